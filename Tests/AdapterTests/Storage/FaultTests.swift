import Foundation
import GRDB
import GatewayCore
import GatewayTestSupport
import Synchronization
import Testing

@testable import GatewayStorage

@Suite struct FaultTests {
    /// Keeps the database file from growing, or allows it again.
    private func fillDisk(_ store: SQLiteStore, _ isFull: Bool) async throws {
        try await store.database.writeWithoutTransaction { db in
            let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            let limit = isFull ? pages : 1_000_000
            _ = try Int.fetchOne(db, sql: "PRAGMA max_page_count = \(limit)")
        }
    }

    private func isUnavailable(_ error: any Error) -> Bool {
        if case StoreError.unavailable = error { true } else { false }
    }

    @Test func aFullDiskFailsTheWholeTransactionAndTheStoreRecovers() async throws {
        let seen = Recorder<UInt64>()
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(directory: directory.path)
        try await store.appendChange(seen: seen)
        try await fillDisk(store, true)
        for _ in 0..<2 {
            try await store.gathering(10) { group in
                for job in 0..<10 {
                    group.addTask {
                        await #expect {
                            let size = job == 5 ? 100_000 : 10
                            try await store.appendChange(
                                payload: Data(count: size), seen: seen)
                        } throws: {
                            isUnavailable($0)
                        }
                    }
                }
            }
            #expect(store.head == 1)
            #expect(seen.values == [1])
        }
        // Work that needs no new page still succeeds, and everything does once there is space
        // again.
        #expect(try await store.write(cost: 0) { $0.nextSequence }.value == 2)
        try await fillDisk(store, false)
        #expect(try await store.appendChange(payload: Data(count: 100_000), seen: seen) == 2)
        #expect(seen.values == [1, 2])
        #expect(store.figures.failedCommits == 2)
        try await store.close()
        let reopened = try SQLiteStore(directory: directory.path)
        #expect(try reopened.rows().map(\.sequence) == [1, 2])
        try await reopened.close()
    }

    @Test func aJobThatHidesTheErrorOfTheDiskFailsAllTheSame() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        try await fillDisk(store, true)
        await #expect {
            try await store.write(cost: 1) { transaction in
                _ = try? transaction.append(
                    app: "a", type: .change, source: nil, eventID: nil, acceptedAt: 1,
                    payload: Data(count: 100_000))
            }
        } throws: {
            isUnavailable($0)
        }
        #expect(store.head == 0)
        try await fillDisk(store, false)
        #expect(try await store.appendChange() == 1)
    }

    /// Simulates a kill: only the contents of the files at some moment during the work are left.
    @Test func whatWasAnsweredIsThereAfterACrash() async throws {
        let directory = try TemporaryDirectory()
        var configuration = StoreConfiguration()
        // Files are copied one after the other, which resembles a crash only while the database
        // file itself is not written.
        configuration.checkpointPages = .max
        let store = try SQLiteStore(directory: directory.path, configuration: configuration)
        let answered = Recorder<UInt64>()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for caller in 0..<8 {
                group.addTask {
                    for round in 0..<100 {
                        answered.record(
                            try await store.appendChange(
                                eventID: "\(caller)-\(round)", payload: Data(count: round)))
                    }
                }
            }
            for crash in 0..<5 {
                while answered.values.count < 100 * (crash + 1) { await Task.yield() }
                let before = answered.values
                let copy = try TemporaryDirectory()
                for file in ["store.sqlite", "store.sqlite-wal"] {
                    let data = try Data(
                        contentsOf: URL(fileURLWithPath: directory.path + "/" + file))
                    // The last write may be cut short anywhere.
                    let cut = file.hasSuffix("wal") ? data.dropLast(crash * 700) : data
                    let kept = crash == 0 ? data : cut
                    try kept.write(to: URL(fileURLWithPath: copy.path + "/" + file))
                }
                var verifying = configuration
                verifying.verifiesOnOpen = true
                let revived = try SQLiteStore(directory: copy.path, configuration: verifying)
                let rows = try revived.rows()
                #expect(rows.map(\.sequence) == Array(1...revived.head))
                if crash == 0 { #expect(revived.head >= (before.max() ?? 0)) }
                #expect(try await revived.appendChange() == UInt64(rows.count + 1))
                try await revived.close()
            }
            try await group.waitForAll()
        }
        #expect(store.head == 800)
        try await store.close()
    }

    @Test func theWriteAheadLogIsCopiedNowAndThen() async throws {
        let directory = try TemporaryDirectory()
        var configuration = StoreConfiguration()
        configuration.checkpointPages = 100
        let store = try SQLiteStore(directory: directory.path, configuration: configuration)
        for _ in 0..<300 { try await store.appendChange(payload: Data(count: 4_000)) }
        let figures = store.figures
        #expect(figures.checkpoints >= 10)
        // Without checkpoints it would have more than 300 pages of payload alone.
        #expect(figures.walBytes < 200 * 4_096)
        #expect(figures.databaseBytes > 200 * 4_096)
        try await store.close()
    }

    @Test func onlyAWriteProvesThatTheDiskIsWell() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        #expect(!store.figures.isRefusingWrites)
        try await fillDisk(store, true)
        await #expect(throws: StoreError.self) {
            try await store.appendChange(payload: Data(count: 100_000))
        }
        // Transactions without changes succeed, like those that only repeat events.
        for _ in 0..<20 {
            _ = try await store.write(cost: 0) { $0.nextSequence }
            #expect(store.figures.isRefusingWrites)
        }
        #expect(store.figures.failedCommits == 1)
        // No one writes any more: the store notices on its own.
        try await fillDisk(store, false)
        try await eventually("the store takes writes") { !store.figures.isRefusingWrites }
        #expect(store.head == 0)
    }

    /// The free space, as a test sets it.
    private final class FreeSpace: Sendable {
        private let bytes: Mutex<Int64?>
        init(_ bytes: Int64?) { self.bytes = Mutex(bytes) }
        func set(_ bytes: Int64?) { self.bytes.withLock { $0 = bytes } }
        var configuration: StoreConfiguration {
            var configuration = StoreConfiguration()
            configuration.freeBytes = { _ in self.bytes.withLock { $0 } }
            return configuration
        }
    }

    @Test func whatIsReservedIsLeftToWhatFreesSpace() async throws {
        let directory = try TemporaryDirectory()
        let free = FreeSpace(1 << 30)
        let store = try SQLiteStore(directory: directory.path, configuration: free.configuration)
        for _ in 0..<20 { try await store.appendChange(payload: Data(count: 4_000)) }
        free.set(DiskSpacePolicy.reservedBytes)
        await #expect {
            try await store.appendChange()
        } throws: { error in
            guard case StoreError.unavailable(let reason) = error else { return false }
            return reason.contains("the disk of \(directory.path) is full: 1 MB free")
        }
        #expect(store.figures.isRefusingWrites && store.head == 20)
        // An event that is posted again changes nothing, and is accepted.
        #expect(try await store.write(cost: 0) { $0.nextSequence }.value == 21)
        // Within one transaction, jobs that free space succeed and the others fail.
        try await store.gathering(2) { group in
            group.addTask {
                await #expect(throws: StoreError.self) { try await store.appendChange() }
            }
            group.addTask {
                let floor = try await store.write(cost: 0, freesSpace: true) {
                    try $0.prune(acceptedBefore: 0, keepRows: 5, limit: 100)
                }
                #expect(floor.value == 15)
            }
        }
        #expect(store.floor == 15 && store.figures.failedCommits == 2)
        free.set(1 << 30)
        #expect(try await store.appendChange() == 21)
        try await store.close()
    }

    @Test func littleFreeSpaceBoundsTheWriteAheadLog() async throws {
        let directory = try TemporaryDirectory()
        let free = FreeSpace(4 << 20)
        let store = try SQLiteStore(directory: directory.path, configuration: free.configuration)
        for _ in 0..<300 {
            try await store.appendChange(payload: Data(count: 20_000))
            // A quarter of the free space, and the commit that exceeded it.
            #expect(store.figures.walBytes < (1 << 20) + 150_000)
        }
        #expect(store.figures.databaseBytes > 5 << 20)
        try await store.close()
    }

    @Test func errorsOfTheDiskNameItsFile() throws {
        let files = StoreFiles(directory: "/data")
        // An error of a copy carries the message of the other connection.
        let full = DatabaseError(resultCode: .SQLITE_FULL, message: "not an error")
        #expect(
            StoreError(full, files: files).description.hasPrefix(
                "the store is unavailable: the disk of /data is full"))
        let failed = DatabaseError(resultCode: .SQLITE_IOERR, message: "not an error")
        #expect(
            StoreError(failed, files: files)
                == .unavailable(reason: "/data/store.sqlite: disk I/O error (SQLite error 10)"))
        let directory = try TemporaryDirectory()
        let file = directory.path + "/file"
        try Data().write(to: URL(fileURLWithPath: file))
        #expect {
            try SQLiteStore(directory: file)
        } throws: {
            "\($0)".hasSuffix("\(file)/store.lock cannot be opened: Not a directory")
        }
    }

    @Test func noErrorTextHoldsAValue() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        try await store.database.write { try $0.execute(sql: "DROP TABLE meta") }
        await #expect {
            try await store.write(cost: 0) { try $0.setMeta("the-key", Data("the-value".utf8)) }
        } throws: {
            isUnavailable($0) && !"\($0)".contains("the-key") && !"\($0)".contains("the-value")
        }
    }
}
