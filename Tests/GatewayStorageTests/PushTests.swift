import Foundation
import Testing

@testable import GatewayStorage

/// What is kept of pushes.
@Suite struct PushTests {
    private func key(_ client: String) -> RegistrationKey {
        RegistrationKey(app: "app", client: client)
    }

    private func attempt(_ client: String, at moment: Int64) -> PushAttemptRow {
        PushAttemptRow(
            at: moment, key: key(client), channel: "widgets", outcome: "sent", reason: nil,
            reference: "id", milliseconds: 3)
    }

    private func clients(_ store: SQLiteStore) throws -> [PushClientRow] {
        var found: [PushClientRow] = []
        try store.pushClients(batch: 2) { found += $0 }
        return found
    }

    @Test func `clients are kept, replaced and removed, also across a restart`() async throws {
        let directory = try TemporaryDirectory()
        var store = try SQLiteStore(directory: directory.path)
        let rows = (0..<5).map { PushClientRow(key: key("c\($0)"), payload: Data([UInt8($0)])) }
        _ = try await store.write(cost: 0) { try $0.putPushClients(rows) }
        _ = try await store.write(cost: 0) {
            try $0.putPushClients([
                PushClientRow(key: rows[1].key, payload: Data("new".utf8)),
                PushClientRow(key: rows[2].key, payload: nil),
            ])
        }
        try await store.close()
        store = try SQLiteStore(directory: directory.path)
        let found = try clients(store)
        #expect(found.map(\.key.client) == ["c0", "c1", "c3", "c4"])
        #expect(found[1].payload == Data("new".utf8))
        try await store.close()
    }

    @Test func `attempts are listed from the newest on, of all or of one client`() async throws {
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(directory: directory.path)
        let rows = (0..<6).map { attempt("c\($0 % 2)", at: Int64($0)) }
        _ = try await store.write(cost: 0) { try $0.appendPushAttempts(rows) }
        let all = try await store.pushAttempts(limit: 4)
        #expect(all.map(\.at) == [5, 4, 3, 2])
        let rest = try await store.pushAttempts(before: all.last?.number, limit: 10)
        #expect(rest.map(\.at) == [1, 0])
        let own = try await store.pushAttempts(of: key("c1"), limit: 10)
        #expect(own.map(\.at) == [5, 3, 1])
        #expect(own.first?.reference == "id" && own.first?.reason == nil)
        try await store.close()
    }

    @Test func `attempts go by age and by number, so many at a time`() async throws {
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(directory: directory.path)
        let rows = (0..<10).map { attempt("c", at: Int64($0)) }
        _ = try await store.write(cost: 0) { try $0.appendPushAttempts(rows) }
        let first = try await store.write(cost: 0) {
            try $0.prunePushAttempts(endedBefore: 5, keepRows: 100, limit: 3)
        }
        #expect(first.value == 3)
        let second = try await store.write(cost: 0) {
            try $0.prunePushAttempts(endedBefore: 5, keepRows: 100, limit: 100)
        }
        #expect(second.value == 2)
        let third = try await store.write(cost: 0) {
            try $0.prunePushAttempts(endedBefore: 0, keepRows: 2, limit: 100)
        }
        #expect(third.value == 3)
        #expect(try await store.pushAttempts(limit: 10).map(\.at) == [9, 8])
        try await store.close()
    }

    @Test func `an issuer has one provider token`() async throws {
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(directory: directory.path)
        for issuedAt: Int64 in [1, 2] {
            _ = try await store.write(cost: 0) {
                try $0.putProviderToken(
                    ProviderTokenRow(issuer: "team.key", issuedAt: issuedAt, token: "t\(issuedAt)"))
            }
        }
        #expect(
            try store.providerTokens() == [
                ProviderTokenRow(issuer: "team.key", issuedAt: 2, token: "t2")
            ])
        try await store.close()
    }
}
