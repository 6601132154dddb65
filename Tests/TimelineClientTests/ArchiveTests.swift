import Foundation
import Testing
import WidgetModel

@testable import TimelineClient

@Suite struct ArchiveTests {
    let directory: String
    var file: ClientArchive { ClientArchive(directory: directory + "/client") }

    init() throws {
        directory = NSTemporaryDirectory() + "archive-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
    }

    var sample: ArchiveDocument {
        let panda = character("Power Panda")
        return ArchiveDocument(
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
        defer { try? FileManager.default.removeItem(atPath: directory) }
        #expect(file.load(owner: sample.owner) == nil)
        try file.save(sample)
        #expect(file.load(owner: sample.owner) == sample)
        let mode = try FileManager.default.attributesOfItem(atPath: file.statePath)[
            .posixPermissions]
        #expect(mode as? Int == 0o600, "push tokens would be readable by others")
    }

    @Test func anArchiveOfAnotherClientIsNotRead() throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try file.save(sample)
        #expect(file.load(owner: "com.mygame device-2") == nil)
    }

    @Test func aSaveThatFailsLeavesTheOneBefore() throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try file.save(sample)
        // A directory takes the place of the temporary file, so the file can be neither made nor
        // replaced.
        try FileManager.default.createDirectory(
            atPath: file.statePath + ".new", withIntermediateDirectories: false)
        var later = sample
        later.state.position = cursor(99)
        #expect(throws: ClientArchive.Failure.self) { try file.save(later) }
        #expect(file.load(owner: sample.owner) == sample)
    }

    @Test func aWriteThatWasCutAnywhereLeavesTheOneBefore() throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try file.save(sample)
        var later = sample
        later.state.position = cursor(99)
        let bytes = later.json.serialized
        for count in stride(from: 0, to: bytes.count, by: 37) {
            // The state that a crash during the write leaves behind.
            try Data(bytes.prefix(count)).write(to: URL(fileURLWithPath: file.statePath + ".new"))
            #expect(file.load(owner: sample.owner) == sample)
        }
        try file.save(later)
        #expect(file.load(owner: sample.owner) == later)
    }

    @Test func aDamagedArchiveIsForgottenAndNeverTraps() throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
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

    /// While the device is locked, the timelines may be unreadable, but the cursors are not.
    @Test func cursorsAndBudgetsAreReadWithoutTheTimelines() throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var budget = ReloadBudget()
        budget.spend(now: date(5))
        try file.save(sample)
        try file.saveBudgets([status: budget])
        let shown = TimelineArchive(
            widget: status,
            entries: [
                .init(
                    date: date(0), relevance: nil,
                    drawings: [
                        .init(
                            try WidgetContextRules().environment(
                                of: status, with: WidgetTraits(), at: .homeScreen,
                                on: WidgetDevice(.iOS))): WidgetNode(.text("secret"))
                    ])
            ], reloadDate: nil)
        try file.save(timeline: shown)
        #expect(try file.timeline(of: status) == shown)
        for path in [file.statePath, file.budgetsPath] {
            #expect(try !String(contentsOfFile: path, encoding: .utf8).contains("secret"))
        }
        try FileManager.default.removeItem(atPath: file.directory + "/timelines")
        #expect(file.load(owner: sample.owner) == sample)
        #expect(file.loadBudgets(limit: budget.limit) == [status: budget])
    }
}
