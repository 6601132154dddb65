import Foundation
import Testing
import WidgetModel

@testable import TimelineRuntime
@testable import WidgetViews

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
