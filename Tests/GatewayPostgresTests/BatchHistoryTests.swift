import GatewayCore
import GatewayTestSupport
import Synchronization
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayFleet
@testable import GatewayPostgres

/// Which cursors a node of a cluster accepts.
@Suite struct BatchHistoryTests {
    private let history: BatchHistory
    private let source = Source()
    private let log = UInt128(7) << 96

    /// A log whose older batches have the tags of their last sequence.
    private final class Source: BatchSource {
        let questions = Mutex<[UInt64]>([])
        let barriers = Mutex(0)
        let isAway = Mutex(false)
        let onBarrier = Mutex<(@Sendable () -> Void)?>(nil)

        func barrier() async throws -> UInt64 {
            barriers.withLock { $0 += 1 }
            if isAway.withLock({ $0 }) { throw EngineError.cluster(.noAnswer) }
            onBarrier.withLock { $0 }?()
            return 25
        }

        func tag(of sequence: UInt64) async throws -> UInt32? {
            questions.withLock { $0.append(sequence) }
            if isAway.withLock({ $0 }) { throw EngineError.cluster(.noAnswer) }
            return sequence <= 10 ? UInt32(sequence) : nil
        }
    }

    /// Knows the batches that end at 12, from which the node read the log, 15 and 20.
    init() {
        var start = LogStart()
        start.position = LogPosition(last: 12, chain: UInt128(12) << 96)
        history = BatchHistory(start)
        history.note(logID: log)
        history.use(source)
        note(15)
        note(20)
    }

    private func note(_ last: Int64) {
        history.note(LogPosition(last: last, chain: UInt128(last) << 96))
    }

    private func cursor(_ sequence: UInt64, tag: UInt32, log: UInt32 = 7) -> Cursor {
        Cursor(epoch: EpochID(ordinal: log, nonce: tag), sequence: sequence, tag: 0)
    }

    @Test func `an issued cursor has the tag of its batch, and is accepted`() {
        for sequence in [UInt64(16), 20] {
            let id = history.identity(of: sequence, in: history.epoch)
            #expect(id == EpochID(ordinal: 7, nonce: 20))
            let cursor = Cursor(epoch: id, sequence: sequence, tag: 0)
            #expect(history.isKnown(cursor))
            #expect(history.judge(cursor).point == .after(sequence))
        }
        #expect(history.aheadCount == 0)
    }

    @Test func `another tag, another log and a sequence beyond the log are stale`() {
        for cursor in [cursor(20, tag: 15), cursor(20, tag: 20, log: 8), cursor(21, tag: 20)] {
            #expect(history.judge(cursor).point == .everything)
        }
        #expect(history.aheadCount == 3)
    }

    @Test func `a cursor with another batch, or beyond the log, is evidence of a loss`()
        async throws
    {
        let evidence = Mutex<[UInt64]>([])
        history.onLostTail { cursor in evidence.withLock { $0.append(cursor.sequence) } }
        let others = [
            cursor(20, tag: 20), cursor(20, tag: 20, log: 8), cursor(0, tag: 1), cursor(25, tag: 3),
            // Retention has removed it.
            cursor(11, tag: 7),
        ]
        for cursor in others {
            try await history.find(cursor)
            _ = history.judge(cursor)
        }
        #expect(evidence.withLock { $0 } == [])
        for cursor in [cursor(20, tag: 15), cursor(26, tag: 26), cursor(9, tag: 8)] {
            try await history.find(cursor)
            _ = history.judge(cursor)
        }
        #expect(evidence.withLock { $0 } == [20, 26, 9])
    }

    @Test func `nothing lies before the first batch`() {
        #expect(history.judge(cursor(0, tag: 0)).point == .after(0))
        #expect(history.judge(cursor(0, tag: 1)).point == .everything)
    }

    @Test func `an older batch is looked up once`() async throws {
        let old = cursor(9, tag: 9)
        #expect(!history.isKnown(old))
        #expect(history.judge(old).point == .everything)
        try await history.find(old)
        try await history.find(old)
        #expect(history.judge(old).point == .after(9))
        #expect(history.judge(cursor(9, tag: 8)).point == .everything)
        // A response repeats the client's own cursor.
        #expect(history.identity(of: 9, in: history.epoch).nonce == 9)
        // Retention has removed it.
        try await history.find(cursor(11, tag: 11))
        #expect(history.judge(cursor(11, tag: 11)).point == .everything)
        #expect(history.judge(cursor(12, tag: 12)).point == .after(12))
        #expect(source.questions.withLock { $0 } == [9, 11])
    }

    @Test func `a cursor ahead of this node waits for the other nodes' batches`() async throws {
        let ahead = cursor(25, tag: 25)
        source.onBarrier.withLock { [history] in
            $0 = { history.note(LogPosition(last: 25, chain: UInt128(25) << 96)) }
        }
        try await history.find(ahead)
        #expect(history.judge(ahead).point == .after(25))
        // Beyond the barrier it is of a lost tail.
        source.onBarrier.withLock { $0 = nil }
        let lost = cursor(30, tag: 30)
        try await history.find(lost)
        #expect(history.judge(lost).point == .everything)
        #expect(source.questions.withLock { $0 } == [])
        source.isAway.withLock { $0 = true }
        await #expect(throws: EngineError.self) { try await history.find(lost) }
        await #expect(throws: EngineError.self) { try await history.find(cursor(3, tag: 3)) }
        // What needs no question is answered.
        try await history.find(cursor(20, tag: 20))
        try await history.find(cursor(3, tag: 3, log: 9))
    }
}

/// Callers that wait for a value.
@Suite struct WaitersTests {
    @Test func `callers are released in any order, and at their deadline`() async throws {
        let clock = HeldClock()
        let waiters = Waiters(from: 3, patience: 1_000, clock: clock.gateway)
        #expect(await waiters.wait(for: 3))
        async let five = waiters.wait(for: 5)
        async let four = waiters.wait(for: 4)
        async let never = waiters.wait(for: 9)
        while waiters.count < 3 { await Task.yield() }
        waiters.advance(to: 4)
        #expect(await four)
        waiters.advance(to: 6)
        #expect(await five)
        waiters.advance(to: 5)
        #expect(waiters.reached == 6 && waiters.count == 1)
        while waiters.count > 0 {
            clock.advance(to: clock.now + 1_000)
            await Task.yield()
        }
        #expect(await !never)
        #expect(waiters.count == 0)
    }
}
