import Foundation
import GRDB
import Synchronization
import Testing

@testable import GatewayStorage

@Suite struct GroupCommitTests {
    @Test func jobsThatWaitShareOneTransaction() async throws {
        let observed = Recorder<Int>()
        let store = try SQLiteStore(
            inMemory: StoreConfiguration(), observer: { observed.record($0.jobs) })
        let results = Recorder<UInt64>()
        try await store.gathering(200) { group in
            for _ in 0..<200 {
                group.addTask { results.record(try await store.appendChange()) }
            }
        }
        #expect(results.values.sorted() == Array(1...200))
        #expect(store.figures.commits == 2)
        #expect(store.figures.jobs == 201)
        #expect(store.figures.rows == 200)
        _ = try await store.write(cost: 0) { _ in }
        #expect(observed.values.prefix(2) == [1, 200])
    }

    @Test func aTransactionIsBoundedByJobsAndByCost() async throws {
        var configuration = StoreConfiguration()
        configuration.transactionJobsMax = 4
        configuration.transactionCostMax = 10
        let observed = Recorder<Int>()
        let store = try SQLiteStore(
            inMemory: configuration, observer: { observed.record($0.jobs) })
        let costs = [20, 5, 5, 1, 0, 0, 0, 0]
        try await store.gathering(costs.count) { group in
            for (index, cost) in costs.enumerated() {
                group.addTask { _ = try await store.write(cost: cost) { _ in } }
                while store.figures.waitingJobs <= index { await Task.yield() }
            }
        }
        _ = try await store.write(cost: 0) { _ in }
        #expect(observed.values.prefix(5) == [1, 1, 2, 4, 1])
    }

    @Test func everyRowIsSeenInOrderBeforeAnyCallerResumes() async throws {
        let seen = Recorder<UInt64>()
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(directory: directory.path)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for caller in 0..<50 {
                group.addTask {
                    for _ in 0..<20 {
                        let committed = try await store.write(cost: 1) { transaction in
                            var last: UInt64 = 0
                            for _ in 0...(caller % 3) {
                                let sequence = try transaction.append(
                                    app: "a", type: .change, source: nil, eventID: nil,
                                    acceptedAt: 1, payload: Data())
                                transaction.afterCommit { seen.record(sequence) }
                                last = sequence
                            }
                            return last
                        }
                        #expect(seen.values.count >= committed.value)
                        #expect(committed.head >= committed.value)
                        #expect(store.head >= committed.head)
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(seen.values == Array(1...store.head))
        #expect(store.figures.commits < 1_000)
        try await store.close()
    }

    @Test func closuresRunInOrder() async throws {
        let seen = Recorder<String>()
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        try await store.gathering(3) { group in
            group.addTask {
                _ = try await store.write(cost: 0) { transaction in
                    transaction.afterCommit { seen.record("before") }
                    for _ in 0..<2 {
                        let sequence = try transaction.append(
                            app: "a", type: .change, source: nil, eventID: nil,
                            acceptedAt: 1, payload: Data())
                        transaction.afterCommit { seen.record("after \(sequence)") }
                    }
                }
            }
            while store.figures.waitingJobs < 1 { await Task.yield() }
            group.addTask {
                await #expect(throws: JobError.self) {
                    try await store.write(cost: 0) { transaction in
                        transaction.afterCommit { seen.record("never") }
                        throw JobError()
                    }
                }
            }
            while store.figures.waitingJobs < 2 { await Task.yield() }
            group.addTask {
                _ = try await store.write(cost: 0) { transaction in
                    let sequence = transaction.nextSequence
                    transaction.afterCommit { seen.record("last \(sequence)") }
                }
            }
        }
        #expect(seen.values == ["before", "after 1", "after 2", "last 3"])
    }

    @Test func aFailingJobLeavesNothingBehindAndCostsTheOthersNothing() async throws {
        let seen = Recorder<UInt64>()
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        let sequences = Recorder<UInt64>()
        try await store.gathering(40) { group in
            for job in 0..<40 {
                group.addTask {
                    if job.isMultiple(of: 2) {
                        sequences.record(
                            try await store.appendChange(eventID: "\(job)", seen: seen))
                        return
                    }
                    await #expect(throws: JobError.self) {
                        try await store.write(cost: 1) { transaction in
                            for _ in 0..<3 {
                                let sequence = try transaction.append(
                                    app: "failed", type: .change, source: "s",
                                    eventID: "\(transaction.nextSequence)", acceptedAt: 1,
                                    payload: Data())
                                transaction.afterCommit { seen.record(sequence) }
                            }
                            try transaction.putRegistration(
                                app: "failed", client: "c", payload: Data(),
                                attributes: [:], updatedAt: 1)
                            throw JobError()
                        }
                    }
                }
            }
        }
        #expect(sequences.values.sorted() == Array(1...20))
        #expect(seen.values == Array(1...20))
        #expect(try store.rows().map(\.app) == Array(repeating: "com.mygame", count: 20))
        #expect(try await store.registration(app: "failed", client: "c") == nil)
        #expect(store.figures.failedJobs == 20)
        #expect(store.figures.commits == 2)
    }

    /// The first set reaches the limit of jobs, the second the limit of cost: its only job costs
    /// more than the queue allows, and is accepted because nothing waits.
    @Test(arguments: [[1, 1, 1], [500]])
    func aJobBeyondTheLimitsOfTheQueueIsRefusedAtOnce(costs: [Int]) async throws {
        var configuration = StoreConfiguration()
        configuration.pendingJobsMax = 3
        configuration.pendingCostMax = 100
        let store = try SQLiteStore(inMemory: configuration)
        try await store.gathering(costs.count) { group in
            for (index, cost) in costs.enumerated() {
                group.addTask { _ = try await store.write(cost: cost) { _ in } }
                while store.figures.waitingJobs <= index { await Task.yield() }
            }
            #expect(store.figures.waitingCost == costs.reduce(0, +))
            group.addTask {
                await #expect(throws: StoreError.busy) { try await store.appendChange() }
            }
            while store.figures.refusedJobs == 0 { await Task.yield() }
        }
        #expect(store.figures.waitingCost == 0)
        try await store.appendChange()
        #expect(store.head == 1)
    }

    /// One app posts as much as it can: its jobs stay in order, those of another app are
    /// interleaved, and there is room for them.
    @Test func appsTakeTurnsBeforeTheWriter() async throws {
        var configuration = StoreConfiguration()
        configuration.pendingJobsMax = 20
        configuration.turnCost = 10
        let store = try SQLiteStore(inMemory: configuration)
        try await store.gathering(18) { group in
            func post(_ app: String, _ number: Int64) async {
                let waiting = store.figures.waitingJobs
                group.addTask {
                    _ = try await store.write(for: .app(app), cost: 10) {
                        try $0.append(
                            app: app, type: .change, source: nil, eventID: nil,
                            acceptedAt: number, payload: Data())
                    }
                }
                while store.figures.waitingJobs <= waiting { await Task.yield() }
            }
            for number in Int64(1)...16 { await post("greedy", number) }
            await #expect(throws: StoreError.busy) {
                _ = try await store.write(for: .app("greedy"), cost: 10) { _ in }
            }
            for number in Int64(1)...2 { await post("other", number) }
        }
        let rows = try store.rows()
        #expect(rows.filter { $0.app == "greedy" }.map(\.acceptedAt) == Array(1...16))
        #expect(rows.filter { $0.app == "other" }.map(\.acceptedAt) == [1, 2])
        #expect((rows.lastIndex { $0.app == "other" } ?? .max) <= 4)
    }

    @Test func closingFinishesWhatWaitsAndTakesNothingMore() async throws {
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(directory: directory.path)
        try await store.gathering(30) { group in
            for _ in 0..<30 { group.addTask { try await store.appendChange() } }
            while store.figures.waitingJobs < 30 { await Task.yield() }
            group.addTask { try await store.close() }
        }
        try await store.close()
        await #expect(throws: StoreError.closed) { try await store.appendChange() }
        await #expect(throws: StoreError.closed) {
            try await store.registration(app: "a", client: "c")
        }
        #expect(throws: StoreError.closed) { try store.rows() }
        #expect(throws: StoreError.closed) {
            try store.openEpoch(id: 1, now: 0, voidOlder: true)
        }
        let wal = directory.path + "/store.sqlite-wal"
        let size = try? FileManager.default.attributesOfItem(atPath: wal)[.size] as? Int
        #expect((size ?? 0) == 0)
        let next = try SQLiteStore(directory: directory.path)
        #expect(next.head == 30)
        try await next.close()
    }
}

/// The writer's own way of binding values must have the same results as GRDB's.
@Suite struct WriterStatementTests {
    private static let texts = [
        "", "a", "fifteen letters", "more than fifteen letters", "größer", "日本語 👩‍👩‍👧", "a\u{301}",
    ]

    @Test(arguments: texts, [0, 1, 5_000])
    func whatIsBoundIsWhatIsRead(text: String, count: Int) async throws {
        let payload = Data((0..<count).map { UInt8(truncatingIfNeeded: $0) })
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        _ = try await store.write(cost: 0) { transaction in
            _ = try transaction.event(app: text, source: text, id: text)
            try transaction.append(
                app: text, type: .change, source: text, eventID: text, acceptedAt: .min,
                payload: payload)
            try transaction.append(
                app: text, type: .reload, source: nil, eventID: nil, acceptedAt: .max,
                payload: payload)
            let known = try transaction.event(app: text, source: text, id: text)
            #expect(known?.sequence == 1)
            #expect(known?.payload == payload)
            #expect(try transaction.event(app: text, source: text, id: text + "x") == nil)
        }
        let rows = try store.rows()
        #expect(rows.map(\.app) == [text, text])
        #expect(rows.map(\.source) == [text, nil])
        #expect(rows.map(\.eventID) == [text, nil])
        #expect(rows.map(\.acceptedAt) == [.min, .max])
        #expect(rows.map(\.payload) == [payload, payload])
        for row in rows { #expect(Array(row.app.utf8) == Array(text.utf8)) }
    }

    /// An empty text is stored as a text, and empty bytes as NULL.
    @Test func emptyIsNotNull() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        try await store.appendChange(app: "", eventID: "", payload: Data())
        let types = try await store.database.read { db in
            try String.fetchOne(
                db,
                sql: """
                    SELECT typeof(app) || ' ' || typeof(event_id) || ' ' || typeof(payload) FROM log
                    """)
        }
        #expect(types == "text text null")
    }

    /// A statement that failed can be used again, within its transaction and after it.
    @Test func aStatementThatFailedRunsAgain() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        try await store.database.writeWithoutTransaction { db in
            try db.execute(
                sql: """
                    CREATE TRIGGER refuse BEFORE INSERT ON log WHEN NEW.app = 'refused'
                    BEGIN SELECT RAISE(ABORT, 'refused'); END
                    """)
        }
        _ = try await store.write(cost: 0) { transaction in
            for app in ["a", "refused", "b"] {
                do {
                    try transaction.append(
                        app: app, type: .change, source: nil, eventID: nil, acceptedAt: 1,
                        payload: Data(app.utf8))
                } catch StoreError.rejected {
                    #expect(app == "refused")
                }
            }
        }
        try await store.appendChange(app: "c")
        let rows = try store.rows()
        #expect(rows.map(\.app) == ["a", "b", "c"])
        #expect(rows.map(\.sequence) == [1, 2, 3])
    }
}
