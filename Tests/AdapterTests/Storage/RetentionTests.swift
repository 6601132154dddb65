import Foundation
import GRDB
import Testing

@testable import GatewayStorage

@Suite struct RetentionTests {
    private func prune(
        _ store: SQLiteStore, acceptedBefore: Int64 = 0, keepRows: UInt64 = .max, limit: Int = 1_000
    ) async throws -> UInt64? {
        try await store.write(cost: 0) {
            try $0.prune(acceptedBefore: acceptedBefore, keepRows: keepRows, limit: limit)
        }.value
    }

    @Test func rowsGoByAge() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        // The clock went back once: the young row keeps the old one that follows it.
        for time: Int64 in [10, 20, 30, 90, 40, 100] {
            try await store.appendChange(acceptedAt: time)
        }
        #expect(try await prune(store, acceptedBefore: 30) == 2)
        #expect(try await prune(store, acceptedBefore: 30) == nil)
        #expect(try await prune(store, acceptedBefore: 50) == 3)
        #expect(try store.rows().map(\.sequence) == [4, 5, 6])
        #expect(store.floor == 3)
        #expect(store.head == 6)
    }

    @Test func rowsBeyondTheNewestOnesGo() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        for _ in 0..<10 { try await store.appendChange() }
        #expect(try await prune(store, keepRows: 10) == nil)
        #expect(try await prune(store, keepRows: 4) == 6)
        #expect(try store.rows().map(\.sequence) == [7, 8, 9, 10])
    }

    @Test func oneCallForgetsNoMoreThanItsLimit() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        for _ in 0..<10 { try await store.appendChange() }
        #expect(try await prune(store, keepRows: 1, limit: 4) == 4)
        #expect(try await prune(store, keepRows: 1, limit: 4) == 8)
        #expect(try await prune(store, keepRows: 1, limit: 4) == 9)
        #expect(try await prune(store, keepRows: 1, limit: 4) == nil)
    }

    @Test func sequencesAreNotUsedAgainWhenEverythingWasPruned() async throws {
        let directory = try TemporaryDirectory()
        var store = try SQLiteStore(directory: directory.path)
        for _ in 0..<5 { try await store.appendChange(eventID: UUID().uuidString) }
        #expect(try await prune(store, keepRows: 0) == 5)
        #expect(try store.rows().isEmpty)
        try await store.close()
        store = try SQLiteStore(directory: directory.path)
        #expect(store.head == 5)
        #expect(store.floor == 5)
        #expect(try await store.appendChange() == 6)
        #expect(try store.rows().map(\.sequence) == [6])
        try await store.close()
    }

    @Test func aPrunedEventIsForgotten() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        try await store.appendChange(eventID: "e")
        _ = try await prune(store, keepRows: 0)
        #expect(try await store.appendChange(eventID: "e") == 2)
    }

    @Test func theFloorStaysWhenTheJobThatPrunedFails() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        for _ in 0..<5 { try await store.appendChange() }
        await #expect(throws: JobError.self) {
            try await store.write(cost: 0) {
                _ = try $0.prune(acceptedBefore: .max, keepRows: 0, limit: 100)
                throw JobError()
            }
        }
        #expect(store.floor == 0)
        #expect(try store.rows().count == 5)
        #expect(try await prune(store, keepRows: 2) == 3)
    }

    @Test func theCatalogInForceAtTheOldestRowIsKept() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        func put(_ app: String, _ text: String) async throws {
            _ = try await store.write(cost: 1) { transaction in
                let sequence = try transaction.append(
                    app: app, type: .catalog, source: nil, eventID: nil, acceptedAt: 1,
                    payload: Data())
                try transaction.putCatalog(
                    app: app, sequence: sequence, payload: Data(text.utf8))
            }
        }
        try await put("a", "a1")
        try await put("b", "b2")
        try await put("a", "a3")
        try await store.appendChange(app: "a")
        try await put("a", "a5")
        try await store.appendChange(app: "a")
        func names() throws -> [String] {
            try store.catalogs().map { "\(String(decoding: $0.payload, as: UTF8.self))" }
        }
        #expect(try names() == ["a1", "b2", "a3", "a5"])
        #expect(try await prune(store, keepRows: 4) == 2)
        #expect(try names() == ["a1", "b2", "a3", "a5"])
        #expect(try await prune(store, keepRows: 3) == 3)
        #expect(try names() == ["b2", "a3", "a5"])
        #expect(try await prune(store, keepRows: 0) == 6)
        #expect(try names() == ["b2", "a5"])
        #expect(try store.catalogs().map(\.sequence) == [2, 5])
        #expect(try await store.catalog(app: "a", at: 6)?.payload == Data("a5".utf8))
    }

    @Test func freedSpaceGoesBackToTheFileSystemBitByBit() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        for _ in 0..<40 {
            _ = try await store.write(cost: 1) { transaction in
                for _ in 0..<25 {
                    try transaction.append(
                        app: "a", type: .change, source: nil, eventID: nil, acceptedAt: 1,
                        payload: Data(count: 8_000))
                }
            }
        }
        func pages() async throws -> Int {
            try await store.database.read { try Int.fetchOne($0, sql: "PRAGMA page_count") } ?? 0
        }
        let full = try await pages()
        _ = try await prune(store, keepRows: 0)
        let once = try await pages()
        #expect(once < full)
        #expect(once >= full - 513)
        for _ in 0..<20 { _ = try await prune(store, keepRows: 0) }
        #expect(try await pages() < 400)
    }
}
