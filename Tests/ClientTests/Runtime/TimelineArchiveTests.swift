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
