import Dispatch
import Foundation
import GatewayTestSupport
import Testing

@testable import GatewayStorage

/// The persisted state of pushes.
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
        #expect(try store.pushesClearUpTo() == 0)
        for clear in [7, UInt64.max] {
            _ = try await store.write(cost: 0) { try $0.putPushes(clearUpTo: clear) }
            #expect(try store.pushesClearUpTo() == clear)
        }
        let found = try clients(store)
        #expect(found.map(\.key.client) == ["c0", "c1", "c3", "c4"])
        #expect(found[1].payload == Data("new".utf8))
        try await store.close()
    }

    @Test func `attempts of an app are listed from the newest on, narrowed as asked`()
        async throws
    {
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(directory: directory.path)
        var rows = (0..<6).map { attempt("c\($0 % 2)", at: Int64($0)) }
        rows.append(
            PushAttemptRow(
                at: 6, key: RegistrationKey(app: "other", client: "c1"), channel: "webhook",
                outcome: "retry", reason: "500", reference: nil, milliseconds: 1))
        rows.append(
            PushAttemptRow(
                at: 7, key: key("c1"), channel: "webhook", outcome: "retry", reason: "500",
                reference: nil, milliseconds: 1, sequence: 4711))
        _ = try await store.write(cost: 0) { [rows] in try $0.appendPushAttempts(rows) }
        func times(
            limit: Int = 10, _ narrow: (inout PushAttemptQuery) -> Void = { _ in }
        ) async throws -> [Int64] {
            var query = PushAttemptQuery(app: "app")
            narrow(&query)
            return try await store.pushAttempts(query, limit: limit).map(\.at)
        }
        #expect(try await times(limit: 4) == [7, 5, 4, 3])
        let newest = try await store.pushAttempts(PushAttemptQuery(app: "app"), limit: 4)
        #expect(newest.last?.reference == "id" && newest.last?.reason == nil)
        #expect(newest.first?.sequence == 4711 && newest.last?.sequence == nil)
        #expect(try await times { $0.before = newest.last?.number } == [2, 1, 0])
        #expect(try await times { $0.client = "c1" } == [7, 5, 3, 1])
        #expect(try await times { $0.channel = "webhook" } == [7])
        #expect(try await times { $0.outcome = "sent" } == [5, 4, 3, 2, 1, 0])
        #expect(
            try await times {
                $0.client = "c1"
                $0.outcome = "sent"
                $0.before = 4
            } == [1])
        #expect(try await times { $0.app = "none" } == [])
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
        let left = try await store.pushAttempts(PushAttemptQuery(app: "app"), limit: 10)
        #expect(left.map(\.at) == [9, 8])
        try await store.close()
    }

    /// A task that blocked its thread while waiting for a connection would keep the thread from the
    /// tasks that return one: with as many such tasks as threads, nothing would ever continue.
    @Test func `who waits for a connection leaves the threads to others`() async throws {
        let directory = try TemporaryDirectory()
        var configuration = StoreConfiguration()
        configuration.readersMax = 1
        let store = try SQLiteStore(directory: directory.path, configuration: configuration)
        let (isTaken, isOver) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let (hasBegun, hasRun) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let reader = Task {
            try await store.reading { _ in
                isTaken.signal()
                isOver.wait()
            }
        }
        let wasRun = await withCheckedContinuation { continuation in
            // A thread outside the pool has to check that tasks get threads.
            Thread.detachNewThread {
                isTaken.wait()
                let threads = ProcessInfo.processInfo.activeProcessorCount
                for _ in 0..<threads {
                    Task {
                        hasBegun.signal()
                        _ = try await store.providerTokens()
                    }
                }
                for _ in 0..<threads { hasBegun.wait() }
                Task { hasRun.signal() }
                let result = hasRun.wait(timeout: .now() + Patience.seconds)
                isOver.signal()
                continuation.resume(returning: result == .success)
            }
        }
        #expect(wasRun)
        try await reader.value
        try await store.close()
    }

    @Test func `an issuer has one provider token`() async throws {
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(directory: directory.path)
        // The third is late: the token that it would replace is not stored any more.
        for (issuedAt, old, held) in [(1, nil, "t1"), (2, "t1", "t2"), (3, "t1", "t2")] {
            let row = ProviderTokenRow(
                issuer: "team.key", issuedAt: Int64(issuedAt), token: "t\(issuedAt)")
            let answer = try await store.write(cost: 0) {
                try $0.replaceProviderToken(old, with: row)
            }
            #expect(answer.value.token == held)
        }
        #expect(
            try await store.providerTokens() == [
                ProviderTokenRow(issuer: "team.key", issuedAt: 2, token: "t2")
            ])
        try await store.close()
    }
}
