import Foundation
import GRDB
import Testing

@testable import GatewayStorage

@Suite struct OpeningTests {
    @Test func aSecondOpenerIsRefusedUntilTheFirstHasClosed() async throws {
        let directory = try TemporaryDirectory()
        let first = try SQLiteStore(directory: directory.path)
        try await first.appendChange()
        #expect(throws: StoreError.alreadyInUse) { try SQLiteStore(directory: directory.path) }
        try await first.appendChange()
        try await first.close()
        let second = try SQLiteStore(directory: directory.path)
        #expect(second.head == 2)
        try await second.close()
    }

    @Test func theDirectoryAndItsFilesBelongToTheirOwnerAlone() async throws {
        let parent = try TemporaryDirectory()
        let directory = parent.path + "/data"
        let store = try SQLiteStore(directory: directory)
        try await store.appendChange()
        func mode(_ path: String) throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        }
        #expect(try mode(directory) == 0o700)
        let files = try FileManager.default.contentsOfDirectory(atPath: directory)
        #expect(files.contains("store.sqlite-wal"))
        for file in files { #expect(try mode(directory + "/" + file) == 0o600) }
        try await store.close()
    }

    @Test func theSecretIsMadeOnce() async throws {
        let directory = try TemporaryDirectory()
        let first = try SQLiteStore(directory: directory.path)
        try await first.close()
        let second = try SQLiteStore(directory: directory.path)
        try await second.close()
        #expect(first.secret.count == SQLiteStore.secretBytes)
        #expect(first.secret == second.secret)
        #expect(try SQLiteStore(inMemory: StoreConfiguration()).secret != first.secret)
    }

    @Test func everyCommitIsSynced() async throws {
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(directory: directory.path)
        let settings = try await store.database.writeWithoutTransaction { db in
            [
                try String.fetchOne(db, sql: "PRAGMA journal_mode"),
                try String.fetchOne(db, sql: "PRAGMA synchronous"),
                try String.fetchOne(db, sql: "PRAGMA auto_vacuum"),
            ]
        }
        #expect(settings == ["wal", "2", "2"])
        try await store.close()
    }

    @Test func whatIsNotADatabaseIsReportedAsCorrupt() throws {
        let directory = try TemporaryDirectory()
        try Data(repeating: 7, count: 8_192)
            .write(to: URL(fileURLWithPath: directory.path + "/store.sqlite"))
        #expect {
            try SQLiteStore(directory: directory.path)
        } throws: { error in
            if case StoreError.corrupt = error { true } else { false }
        }
    }

    /// The refusal destroys nothing that is left, and takes none of it for an empty store.
    @Test(arguments: ["missing", "empty", "without its log"])
    func aDatabaseThatWasLostIsRefusedWhereOneIsExpected(_ loss: String) async throws {
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(directory: directory.path)
        for _ in 0..<10 { try await store.appendChange() }
        let copy = try TemporaryDirectory()
        func path(_ name: String) -> String { copy.path + "/" + name }
        for name in ["store.sqlite", "store.sqlite-wal"] {
            try FileManager.default.copyItem(
                atPath: directory.path + "/" + name, toPath: path(name))
        }
        let wal = try Data(contentsOf: URL(fileURLWithPath: path("store.sqlite-wal")))
        switch loss {
        case "missing": try FileManager.default.removeItem(atPath: path("store.sqlite"))
        case "empty": try Data().write(to: URL(fileURLWithPath: path("store.sqlite")))
        default:
            try Data(count: wal.count).write(to: URL(fileURLWithPath: path("store.sqlite-wal")))
        }
        #expect {
            try SQLiteStore(directory: copy.path, opening: .existing)
        } throws: { error in
            guard case StoreError.missing(let reason) = error else { return false }
            return reason.contains(path("store.sqlite"))
        }
        if loss != "without its log" {
            #expect(
                try Data(contentsOf: URL(fileURLWithPath: path("store.sqlite-wal"))) == wal)
        }
        let new = try SQLiteStore(directory: copy.path, opening: .createIfMissing)
        #expect(new.head == 0)
        try await new.close()
        try await SQLiteStore(directory: copy.path, opening: .existing).close()
    }

    @Test func aDirectoryThatCannotBeMadeIsReported() throws {
        let directory = try TemporaryDirectory()
        #expect {
            try SQLiteStore(directory: directory.path + "/missing/data")
        } throws: { error in
            if case StoreError.unavailable = error { true } else { false }
        }
    }

    @Test func epochsOpenAtTheHeadAndCanBeVoided() async throws {
        let directory = try TemporaryDirectory()
        var configuration = StoreConfiguration()
        configuration.epochsMax = 3
        var store = try SQLiteStore(directory: directory.path, configuration: configuration)
        #expect(try store.epochs().isEmpty)
        let first = try store.openEpoch(id: .max, now: 7, voidOlder: false)
        #expect(
            first
                == EpochRow(
                    ordinal: 1, id: .max, openedAtSequence: 0, isVoid: false, openedAt: 7))
        for _ in 0..<3 { try await store.appendChange() }
        try await store.close()
        store = try SQLiteStore(directory: directory.path, configuration: configuration)
        let second = try store.openEpoch(id: 2, now: 8, voidOlder: false)
        #expect(second.openedAtSequence == 3)
        #expect(try store.epochs() == [first, second])
        _ = try store.openEpoch(id: 3, now: 9, voidOlder: true)
        #expect(try store.epochs().map(\.isVoid) == [true, true, false])
        _ = try store.openEpoch(id: 4, now: 10, voidOlder: false)
        #expect(try store.epochs().map(\.ordinal) == [2, 3, 4])
        #expect(try store.epochs().map(\.isVoid) == [true, false, false])
        // Ordinals may have gaps: the limit applies to the number of epochs kept.
        _ = try store.openEpoch(id: 5, atLeast: 100, now: 11, voidOlder: true)
        #expect(try store.epochs().map(\.ordinal) == [3, 4, 100])
        #expect(try store.epochs().map(\.isVoid) == [true, true, false])
        let head = try await store.write(cost: 1) { transaction in
            try transaction.openEpoch(id: 6, atLeast: 200, now: 12, voidsOlder: true, kept: 3)
        }.head
        #expect(try store.epochs().map(\.ordinal) == [4, 100, 200])
        #expect(try store.epochs().map(\.isVoid) == [true, true, false])
        #expect(try store.epochs().last?.openedAtSequence == head)
        #expect(try store.hasVoidPositions())
        try await store.close()
    }
}
