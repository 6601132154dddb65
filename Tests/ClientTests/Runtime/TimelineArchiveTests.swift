import Foundation
import Testing
import WidgetModel

@testable import TimelineRuntime
@testable import WidgetViews

private struct StatusEntry: TimelineEntry {
    var date: Date
    var status: String
    var relevance: TimelineEntryRelevance?
}

/// Tests for "Understand the role of app intents": the shown drawing is the archived one.
@Suite("Archived timelines") struct TimelineArchiveTests {
    private static let start = Date(timeIntervalSince1970: 1_795_244_400)
    private static let info = WidgetInfo(
        kind: "com.mygame.game-status", family: .systemSmall,
        configuration: ["a": .single("é\"\n"), "b": .unset, "c": .list(["x", ""])])

    private static func environment(
        _ location: WidgetLocation = .homeScreen, _ state: WidgetDeviceState = WidgetDeviceState()
    ) throws -> WidgetEnvironment {
        try info.environment(at: location, state: state)
    }

    private static func sample() throws -> TimelineArchive {
        let timeline = AnyTimeline(
            Timeline(
                entries: (0..<3).map {
                    StatusEntry(
                        date: start + Double($0) * 600, status: "turn \($0)",
                        relevance: $0 == 1 ? TimelineEntryRelevance(score: 0.5, duration: 60) : nil)
                }, policy: .atEnd))
        let environments = [
            try environment(), try environment(.standBy),
            try environment(.homeScreen, WidgetDeviceState(renderingMode: .accented)),
            try environment(.homeScreen, WidgetDeviceState(colorScheme: .dark)),
        ]
        return TimelineArchive(timeline, of: info, for: environments) { entry, environment in
            environment.draw {
                Text((entry as? StatusEntry)?.status ?? "?")
            }
        }
    }

    @Test func theEntryOfTheMomentIsShownAsItWasDrawn() throws {
        let archive = try Self.sample()
        let home = try Self.environment()
        func shown(_ seconds: Double) -> WidgetNode? {
            archive.node(at: Self.start + seconds, in: home)
        }
        #expect(shown(-1) == nil)
        #expect(shown(0) == WidgetNode(.text("turn 0")))
        #expect(shown(599) == WidgetNode(.text("turn 0")))
        #expect(shown(600) == WidgetNode(.text("turn 1")))
        #expect(shown(1e6) == WidgetNode(.text("turn 2")))
        #expect(archive.reloadDate == Self.start + 1_200)
    }

    @Test func whatWasNotDrawnIsNotShown() throws {
        let carPlay = try Self.environment(.carPlay)
        #expect(try Self.sample().node(at: Self.start, in: carPlay) == nil)
    }

    @Test func whatIsWrittenIsRead() throws {
        let archive = try Self.sample()
        #expect(try TimelineArchive(serialized: archive.serialized) == archive)
        let empty = TimelineArchive(widget: Self.info, entries: [], reloadDate: nil)
        #expect(try TimelineArchive(serialized: empty.serialized) == empty)
    }

    /// A process that shows the timeline without the app knows what a lock hides.
    @Test func whatDecidesWhatIsShownIsArchivedToo() throws {
        for protection in DataProtection.allCases {
            for isOn in [false, true] {
                let declared = WidgetTraits(
                    supportedFamilies: [.systemSmall], isContainerBackgroundRemovable: isOn,
                    dataProtection: protection, configuresRedaction: !isOn)
                let archive = TimelineArchive(
                    widget: Self.info, entries: [], reloadDate: nil, traits: declared)
                let read = try TimelineArchive(serialized: archive.serialized)
                var expected = declared
                expected.supportedFamilies = nil
                #expect(read == archive && read.traits == expected)
            }
        }
    }

    /// Three entries that look alike in four contexts are written once.
    @Test func drawingsThatAreAlikeAreKeptOnce() throws {
        let text = String(decoding: try Self.sample().serialized, as: UTF8.self)
        #expect(text.components(separatedBy: "turn 1").count == 2)
    }

    @Test func anyByteThatIsDamagedIsNoticed() throws {
        let bytes = try Self.sample().serialized
        var unnoticed = 0
        for place in bytes.indices {
            var damaged = bytes
            damaged[place] ^= 0x01
            do {
                let read = try TimelineArchive(serialized: damaged)
                // White space and the like may change without harm, but no content may.
                if try read != Self.sample() { unnoticed += 1 }
            } catch {
                continue
            }
        }
        #expect(unnoticed == 0)
        for end in stride(from: 0, to: bytes.count, by: 7) {
            #expect(throws: TimelineArchive.Fault.corrupt) {
                try TimelineArchive(serialized: Array(bytes[..<end]))
            }
        }
    }

    @Test func whatALaterVersionWroteIsToldApart() throws {
        let text = String(decoding: try Self.sample().serialized, as: UTF8.self)
        let later = text.replacingOccurrences(of: #""version":1"#, with: #""version":2"#)
        #expect(throws: TimelineArchive.Fault.newer(version: 2)) {
            try TimelineArchive(serialized: Array(later.utf8))
        }
        let older = text.replacingOccurrences(of: #""version":1"#, with: #""version":0"#)
        #expect(throws: TimelineArchive.Fault.corrupt) {
            try TimelineArchive(serialized: Array(older.utf8))
        }
    }
}

@Suite final class ArchiveTests: Sendable {
    let file = ClientArchive(directory: NSTemporaryDirectory() + "archive-\(UUID().uuidString)")

    deinit { try? FileManager.default.removeItem(atPath: file.directory) }

    var sample: StateDocument {
        let panda = character("Power Panda")
        return StateDocument(
            owner: "com.mygame device-1",
            state: EngineState(
                registered: registration(
                    [panda, status], sets: [recommended(panda.kind, ["Unipony"])]),
                digest: "own", mustReadRegistration: true, position: cursor(7),
                positions: [
                    .timeline(panda): .init(cursor: cursor(7), awaitsBuild: false),
                    .timeline(status): .init(cursor: cursor(5), awaitsBuild: true),
                    .recommendations(kind: panda.kind): .init(
                        cursor: cursor(6), awaitsBuild: false),
                ]))
    }

    @Test func whatIsSavedIsLoaded() throws {
        #expect(file.load(owner: sample.owner) == nil)
        try file.save(sample)
        #expect(file.load(owner: sample.owner) == sample)
        #expect(file.load(owner: "com.mygame device-2") == nil)
        let mode = try FileManager.default.attributesOfItem(atPath: file.statePath)[
            .posixPermissions]
        #expect(mode as? Int == 0o600, "push tokens would be readable by others")
    }

    @Test func aWriteThatWasCutOrFailsLeavesTheOneBefore() throws {
        try file.save(sample)
        var later = sample
        later.state.position = cursor(99)
        let temporary = URL(fileURLWithPath: file.statePath + ".new")
        // The state that a crash during the write leaves behind.
        try Data(later.json.serialized.prefix(99)).write(to: temporary)
        #expect(file.load(owner: sample.owner) == sample)
        try file.save(later)
        #expect(file.load(owner: sample.owner) == later)
        // A directory in its place can be neither made nor replaced.
        try FileManager.default.createDirectory(at: temporary, withIntermediateDirectories: false)
        #expect(throws: ClientArchive.Failure.self) { try file.save(sample) }
        #expect(file.load(owner: sample.owner) == later)
    }

    @Test func aDamagedArchiveIsForgottenAndNeverTraps() throws {
        try file.save(sample)
        let bytes = sample.json.serialized
        for index in stride(from: 0, to: bytes.count, by: 11) {
            var damaged = bytes
            damaged[index] ^= 0x15
            try Data(damaged).write(to: URL(fileURLWithPath: file.statePath))
            _ = file.load(owner: sample.owner)
            try Data(bytes.prefix(index)).write(to: URL(fileURLWithPath: file.statePath))
            #expect(file.load(owner: sample.owner) == nil)
        }
    }

    @Test func aCopyOfTheLocksDescriptorKeepsNobodyOut() throws {
        var lock: ArchiveLock? = try file.lock("extension")
        #expect(throws: ClientArchive.Failure.self) { try file.lock("extension") }
        // As in a child process that is just being started.
        let copy = dup(try #require(lock).descriptor)
        defer { close(copy) }
        lock = nil
        _ = try file.lock("extension")
    }

    /// While the device is locked, the timelines may be unreadable, but the cursors are not.
    @Test func cursorsAndBudgetsAreReadWithoutTheTimelines() throws {
        var budget = ReloadBudget()
        budget.spend(now: date(5.25))
        let shown = TimelineArchive(widget: status, entries: [], reloadDate: nil)
        #expect(file.loadBudgets(limit: 2).isEmpty)
        try file.save(sample)
        try file.saveBudgets([status: budget])
        try file.save(timeline: shown)
        #expect(try file.timeline(of: status) == shown)
        try FileManager.default.removeItem(atPath: file.directory + "/timelines")
        #expect(file.load(owner: sample.owner) == sample)
        #expect(file.loadBudgets(limit: budget.limit) == [status: budget])
        try Data("{}".utf8).write(to: URL(fileURLWithPath: file.budgetsPath))
        #expect(file.loadBudgets(limit: 2).isEmpty)
    }
}
