import Foundation
import Testing

@testable import GatewayStorage

@Suite struct RegistrationTests {
    private func put(
        _ store: SQLiteStore, _ client: String, app: String = "a", payload: String = "p",
        attributes: [String: [String]] = [:], at time: Int64 = 1
    ) async throws -> Bool {
        try await store.write(cost: 1) {
            try $0.putRegistration(
                app: app, client: client, payload: Data(payload.utf8), attributes: attributes,
                updatedAt: time)
        }.value
    }

    private func list(
        _ store: SQLiteStore, attribute: (name: String, value: String)? = nil,
        after: String? = nil, limit: Int = 100
    ) async throws -> [String] {
        try await store.registrations(app: "a", attribute: attribute, after: after, limit: limit)
            .rows.map(\.key.client)
    }

    @Test func aRegistrationIsStoredReplacedAndDeleted() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        #expect(try await put(store, "c", payload: "one", at: 10))
        #expect(try await !put(store, "c", payload: "two", at: 20))
        let row = RegistrationRow(
            key: RegistrationKey(app: "a", client: "c"), payload: Data("two".utf8), updatedAt: 20,
            seenAt: 20)
        #expect(try await store.registration(app: "a", client: "c") == row)
        let results = try await store.write(cost: 0) {
            [
                try $0.registration(app: "a", client: "c") == row,
                try $0.deleteRegistration(app: "a", client: "c"),
                try $0.registration(app: "a", client: "c") == nil,
                try $0.deleteRegistration(app: "a", client: "c"),
            ]
        }.value
        #expect(results == [true, true, true, false])
        #expect(try await store.registration(app: "a", client: "c") == nil)
        #expect(try await put(store, "c"))
    }

    @Test func listingsArePagedInOrderOfTheClients() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        for client in ["d", "B", "a", "c", "é"] { _ = try await put(store, client) }
        _ = try await put(store, "x", app: "other")
        let first = try await store.registrations(app: "a", attribute: nil, after: nil, limit: 2)
        #expect(first.rows.map(\.key.client) == ["B", "a"])
        #expect(first.hasMore)
        let last = try await store.registrations(app: "a", attribute: nil, after: "a", limit: 3)
        #expect(last.rows.map(\.key.client) == ["c", "d", "é"])
        #expect(!last.hasMore)
    }

    @Test func listingsAreNarrowedToIdsWithAPrefix() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        for client in ["my", "my-1", "my-2", "my~", "mz", "m", "MY-1"] {
            _ = try await put(store, client, attributes: ["n": [client.hasSuffix("1") ? "v" : "w"]])
        }
        func list(
            _ prefix: String, after: String? = nil, attribute: (name: String, value: String)? = nil
        ) async throws -> [String] {
            try await store.registrations(
                app: "a", attribute: attribute, prefix: prefix, after: after, limit: 10
            ).rows.map(\.key.client)
        }
        #expect(try await list("my") == ["my", "my-1", "my-2", "my~"])
        #expect(try await list("my-", after: "my-1") == ["my-2"])
        #expect(try await list("my", attribute: (name: "n", value: "v")) == ["my-1"])
        #expect(try await list("nobody").isEmpty)
        #expect(try await list("").count == 7)
    }

    @Test func aClientIsNotSeenWhenOthersReplaceItsRegistration() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        _ = try await put(store, "c", at: 10)
        _ = try await store.write(cost: 1) {
            try $0.putRegistration(
                app: "a", client: "c", payload: Data(), attributes: [:], updatedAt: 20,
                isSeen: false)
        }
        let row = try await store.registration(app: "a", client: "c")
        #expect(row?.updatedAt == 20 && row?.seenAt == 10)
    }

    @Test func aPageIsBoundedByItsBytes() async throws {
        var configuration = StoreConfiguration()
        configuration.batchBytesMax = 10
        let store = try SQLiteStore(inMemory: configuration)
        for client in ["a", "b", "c"] {
            _ = try await put(store, client, payload: "sixbyt")
        }
        let page = try await store.registrations(app: "a", attribute: nil, after: nil, limit: 3)
        #expect(page.rows.map(\.key.client) == ["a", "b"])
        #expect(page.hasMore)
        #expect(try await list(store, after: "b", limit: 3) == ["c"])
    }

    @Test func listingsByAttributeFollowTheNewestRegistration() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        _ = try await put(store, "c1", attributes: ["account": ["42", "43"], "theme": ["dark"]])
        _ = try await put(store, "c2", attributes: ["account": ["42"]])
        _ = try await put(store, "c3", app: "other", attributes: ["account": ["42"]])
        #expect(try await list(store, attribute: ("account", "42")) == ["c1", "c2"])
        #expect(try await list(store, attribute: ("account", "42"), after: "c1") == ["c2"])
        #expect(try await list(store, attribute: ("account", "43")) == ["c1"])
        #expect(try await list(store, attribute: ("theme", "42")) == [])
        _ = try await put(store, "c1", attributes: ["account": ["43", "43"], "theme": ["light"]])
        #expect(try await list(store, attribute: ("account", "42")) == ["c2"])
        #expect(try await list(store, attribute: ("account", "43")) == ["c1"])
        #expect(try await list(store, attribute: ("theme", "dark")) == [])
        #expect(try await list(store, attribute: ("theme", "light")) == ["c1"])
        _ = try await store.write(cost: 0) { try $0.deleteRegistration(app: "a", client: "c1") }
        #expect(try await list(store, attribute: ("account", "43")) == [])
    }

    @Test func registrationsAreErasedByAttribute() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        for client in ["c1", "c2", "c3"] {
            _ = try await put(store, client, attributes: ["account": ["42"]])
        }
        _ = try await put(store, "c4", attributes: ["account": ["43"]])
        func erase() async throws -> [String] {
            try await store.write(cost: 0) {
                try $0.deleteRegistrations(
                    app: "a", attribute: (name: "account", value: "42"), limit: 2)
            }.value.map(\.client)
        }
        #expect(try await erase() == ["c1", "c2"])
        #expect(try await erase() == ["c3"])
        #expect(try await list(store) == ["c4"])
    }

    @Test func clientsUnseenForLongestAreRemovedFirst() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        for (client, time) in [("c1", 30), ("c2", 10), ("c3", 20), ("c4", 5)] {
            _ = try await put(store, client, attributes: ["n": ["v"]], at: Int64(time))
        }
        func touch(_ clients: [String], _ time: Int64) async throws {
            let seen = clients.map { (key: RegistrationKey(app: "a", client: $0), at: time) }
            _ = try await store.write(cost: 0) { try $0.touch(seen) }
        }
        try await touch(["c4", "nobody"], 40)
        // A late touch does not make a client look older than it is.
        try await touch(["c1"], 15)
        func remove(limit: Int) async throws -> [String] {
            try await store.write(cost: 0) {
                try $0.deleteRegistrations(unseenSince: 25, limit: limit)
            }.value.map(\.client)
        }
        #expect(try await remove(limit: 1) == ["c2"])
        #expect(try await remove(limit: 5) == ["c3"])
        #expect(try await remove(limit: 5) == [])
        #expect(try await list(store, attribute: ("n", "v")) == ["c1", "c4"])
        #expect(try await store.registration(app: "a", client: "c4")?.seenAt == 40)
        #expect(try await store.registration(app: "a", client: "c1")?.seenAt == 30)
        #expect(try await store.registration(app: "a", client: "nobody") == nil)
    }

    @Test func allRegistrationsAreReadInBatches() async throws {
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(directory: directory.path)
        for client in 0..<25 { _ = try await put(store, "c\(client)") }
        _ = try await put(store, "c3", payload: "newer", at: 2)
        var batches: [Int] = []
        var rows: [String: Data] = [:]
        try store.registrations(batch: 10) {
            batches.append($0.count)
            for row in $0 { rows[row.key.client] = row.payload }
        }
        #expect(batches == [10, 10, 5])
        #expect(rows.count == 25)
        #expect(rows["c3"] == Data("newer".utf8))
        try await store.close()
    }
}
