import Foundation
import GRDB
import GatewayCore
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayStorage

/// The usage of apps is stored beside the rows: it has to equal a new count of all rows.
@Suite struct UsageTests {
    private static func counted(_ store: SQLiteStore) throws -> UsageTable {
        var usage = UsageTable()
        try store.registrations { for row in $0 { usage.add(row) } }
        for row in try store.catalogs() { usage.add(row) }
        try store.replay(after: 0, batch: 100) { for row in $0 { usage.add(row) } }
        return usage
    }

    /// One step of a job.
    private enum Step: Sendable {
        case change(String, bytes: Int)
        case catalog(String, bytes: Int)
        case register(String, client: Int)
        case remove(String, client: Int)
        case removeUnseen(before: Int64)
        case removeApp(String)
        case prune(keepRows: UInt64)

        init(using random: inout SplitMix64) {
            let app = ["a", "b", "c"].randomElement(using: &random) ?? ""
            let client = Int.random(in: 0..<6, using: &random)
            let bytes = Int.random(in: 0...2_000, using: &random)
            switch Int.random(in: 0..<24, using: &random) {
            case 0..<8: self = .change(app, bytes: bytes)
            case 8..<11: self = .catalog(app, bytes: bytes)
            case 11..<16: self = .register(app, client: client)
            case 16..<19: self = .remove(app, client: client)
            case 19: self = .removeUnseen(before: Int64.random(in: 0..<200, using: &random))
            case 20: self = .removeApp(app)
            default: self = .prune(keepRows: UInt64.random(in: 0..<40, using: &random))
            }
        }

        private static func append(
            _ type: LogEntryType, of app: String, bytes: Int, at time: Int64,
            _ transaction: inout StoreTransaction
        ) throws -> UInt64 {
            try transaction.append(
                app: app, type: type, source: nil, eventID: nil, acceptedAt: time,
                payload: Data(count: bytes))
        }

        func run(_ transaction: inout StoreTransaction, at time: Int64) throws {
            switch self {
            case .change(let app, let bytes):
                _ = try Self.append(.change, of: app, bytes: bytes, at: time, &transaction)
            case .catalog(let app, let bytes):
                let sequence = try Self.append(.catalog, of: app, bytes: 0, at: time, &transaction)
                // The second catalog replaces the first.
                for bytes in [bytes / 2, bytes] {
                    try transaction.putCatalog(
                        app: app, sequence: sequence, payload: Data(count: bytes))
                }
            case .register(let app, let client):
                try transaction.putRegistration(
                    app: app, client: "\(client)", payload: Data(count: client),
                    attributes: ["n": ["\(client % 2)"]], updatedAt: time)
            case .remove(let app, let client) where client == 0:
                _ = try transaction.deleteRegistrations(
                    app: app, attribute: (name: "n", value: "1"), limit: 2)
            case .remove(let app, let client):
                try transaction.deleteRegistration(app: app, client: "\(client)")
            case .removeUnseen(let before):
                _ = try transaction.deleteRegistrations(unseenSince: before, limit: 3)
            case .removeApp(let app):
                _ = try transaction.deleteApp(app)
                _ = try Self.append(.removal, of: app, bytes: 0, at: time, &transaction)
            case .prune(let keepRows):
                _ = try transaction.prune(acceptedBefore: 0, keepRows: keepRows, limit: 7)
            }
        }
    }

    @Test(arguments: 0..<6) func `usage is what the rows come to, whatever jobs do`(
        seed: UInt64
    ) async throws {
        var random = SplitMix64(seed: seed)
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        for round in 0..<40 {
            // Jobs that share a transaction; some fail after they have changed something.
            let jobs = (0..<Int.random(in: 1...5, using: &random)).map { _ in
                (
                    steps: (0..<Int.random(in: 1...6, using: &random)).map { _ in
                        Step(using: &random)
                    },
                    fails: Int.random(in: 0..<4, using: &random) == 0
                )
            }
            try? await store.gathering(jobs.count) { group in
                for job in jobs {
                    group.addTask {
                        _ = try? await store.write(cost: 1) { transaction in
                            for step in job.steps {
                                try step.run(&transaction, at: Int64(round))
                            }
                            if job.fails { throw JobError() }
                        }
                    }
                }
            }
            #expect(try store.usage == Self.counted(store), "seed \(seed), round \(round)")
        }
        #expect(store.figures.failedJobs > 10)
    }

    @Test func `a job sees what it and the jobs before it did, and a failed one leaves nothing`()
        async throws
    {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        let seen = Recorder<AppUsage>()
        try await store.gathering(3) { group in
            for job in 0..<3 {
                group.addTask {
                    _ = try? await store.write(cost: 1) { transaction in
                        try transaction.append(
                            app: "a", type: .change, source: nil, eventID: nil, acceptedAt: 1,
                            payload: Data(count: 10))
                        try transaction.putRegistration(
                            app: "a", client: "\(job)", payload: Data(), attributes: [:],
                            updatedAt: 1)
                        if job == 1 { throw JobError() }
                        let usage = transaction.usage(of: "a")
                        transaction.afterCommit { seen.record(usage) }
                    }
                }
                while store.figures.waitingJobs <= job { await Task.yield() }
            }
        }
        #expect(
            seen.values == [
                AppUsage(clients: 1, logBytes: 10), AppUsage(clients: 2, logBytes: 20),
            ])
        #expect(store.usage["a"] == AppUsage(clients: 2, logBytes: 20))
    }

    @Test func `a transaction that the disk refuses counts nothing`() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        try await store.appendChange(app: "a", payload: Data(count: 100))
        try await store.database.writeWithoutTransaction { db in
            let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            _ = try Int.fetchOne(db, sql: "PRAGMA max_page_count = \(pages)")
        }
        await #expect(throws: StoreError.self) {
            try await store.appendChange(app: "a", payload: Data(count: 100_000))
        }
        #expect(store.usage["a"] == AppUsage(logBytes: 100))
        try await store.database.writeWithoutTransaction { db in
            _ = try Int.fetchOne(db, sql: "PRAGMA max_page_count = 1000000")
        }
        try await store.appendChange(app: "a", payload: Data(count: 100_000))
        #expect(store.usage["a"] == AppUsage(logBytes: 100_100))
    }
}
