import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayPostgres

@Suite struct FeedReaderModelTests {
    @Test(arguments: 0..<120)
    func everyBatchIsAppliedOnceAndALostTailIsFound(seed: Int) throws {
        var world = FeedWorld(seed: UInt64(seed))
        for _ in 0..<1_500 { world.step() }
        world.settle()
        try world.check()
    }

    /// Shows that the runs above contain what they are for.
    @Test func theModelTakesEveryCourse() {
        var (lost, byReader, applied) = (0, 0, 0)
        for seed in 0..<60 {
            var world = FeedWorld(seed: UInt64(seed))
            for _ in 0..<1_500 { world.step() }
            lost += world.lostTails
            byReader += world.lostTailsOfReader
            applied += world.appliedCount
        }
        #expect(lost > 40)
        #expect(byReader > 10)
        #expect(applied > 700)
    }

    /// A look that is in flight may have been answered before a write that its asker knows of.
    @Test func `a look that is wanted later than one in flight is another one`() {
        var random = SplitMix64(seed: 1)
        var reader = FeedReader(.primary, at: 0)
        let head = LogPosition(last: 0, chain: 1)
        let settings = Durability(standbyNames: "", isFlushed: true, writesFullPages: true)
        let first = LogBatch(first: 0, position: head, node: 0, at: 0, records: [])
        _ = reader.tick(at: 0, using: &random)
        for event: FeedReader.Event in [
            .connected, .answered(.success(.listening)), .answered(.success(.started(at: 1))),
            .fenced(FeedWorld.identity(startedAt: 1)), .answered(.success(.head(head))),
            .answered(.success(.durability(settings))), .batch(first),
            .answered(.success(.batchesRead)),
        ] { _ = reader.receive(event, at: 1, using: &random) }
        let look: [FeedReader.Action] = [.send([.readHead, .readDurability])]
        #expect(reader.receive(.asked(5), at: 5, using: &random) == look)
        #expect(reader.receive(.asked(6), at: 5, using: &random) == [])
        _ = reader.receive(.answered(.success(.head(head))), at: 5, using: &random)
        #expect(
            reader.receive(.answered(.success(.durability(settings))), at: 5, using: &random)
                == [.observeHead(head, askedAt: 5)] + look)
        _ = reader.receive(.answered(.success(.head(head))), at: 5, using: &random)
        #expect(
            reader.receive(.answered(.success(.durability(settings))), at: 5, using: &random)
                == [.observeHead(head, askedAt: 6)])
    }

    @Test func aReaderThatDoesNotHearItselfIsNotReady() {
        var random = SplitMix64(seed: 1)
        var reader = FeedReader(.primary, at: 0)
        let identity = FeedWorld.identity(startedAt: 1)
        let head = LogPosition(last: 0, chain: 1)
        let settings = Durability(standbyNames: "", isFlushed: true, writesFullPages: true)
        let first = LogBatch(first: 0, position: head, node: 0, at: 0, records: [])
        _ = reader.tick(at: 0, using: &random)
        var actions: [FeedReader.Action] = []
        for event: FeedReader.Event in [
            .connected, .answered(.success(.listening)), .answered(.success(.started(at: 1))),
            .fenced(identity), .answered(.success(.head(head))),
            .answered(.success(.durability(settings))), .batch(first),
            .answered(.success(.batchesRead)),
        ] { actions += reader.receive(event, at: 1, using: &random) }
        #expect(actions.contains(.requestNotification))
        #expect(actions.contains(.apply(first)))
        #expect(
            reader.receive(.notified(byServerProcess: 8), at: 2, using: &random)
                == [.send([.readHead, .readDurability])])
        actions = reader.tick(at: 1 + FeedReader.echoDeadline, using: &random)
        #expect(actions.contains(.becomeUnready(.deaf)))
        actions = reader.receive(
            .notified(byServerProcess: identity.process), at: 3_000, using: &random)
        #expect(actions.contains(.becomeReady(head)))
    }
}

/// A reader before a log that grows, is fenced, loses its end and its beginning.
private struct FeedWorld {
    private struct Row {
        let batch: LogBatch
        /// Whether a promotion keeps it.
        var isReplicated: Bool
    }

    private var random: SplitMix64
    private var now: Int64 = 0
    private var reader: FeedReader
    private var rows: [Row]
    /// The batches that retention has dropped.
    private var retired: [LogBatch] = []
    private var hasQuorum = true
    private var startedAt: Int64 = 1
    private var isFenceRequested = false
    private var isOpen = false
    private var requests: [ReadRequest] = []
    private var answers: [FeedReader.Event] = []
    private var nextChain: UInt128 = 2
    private var applied: [LogBatch] = []
    private var losses = 0
    /// Whether the writer will find that the tail was lost, and not fence.
    private var hasLostTail = false
    private(set) var lostTails = 0
    /// The lost tails that the reader found itself.
    private(set) var lostTailsOfReader = 0
    private(set) var appliedCount = 0
    /// Whether the node ends, because its log lost its end.
    private var isEnding = false
    private var faults: [String] = []

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        reader = FeedReader(.quorum, at: 0)
        rows = [
            Row(
                batch: LogBatch(
                    first: 0, position: LogPosition(last: 0, chain: 1), node: 0, at: 0, records: []),
                isReplicated: true)
        ]
    }

    static func identity(startedAt: Int64) -> ServerIdentity {
        ServerIdentity(
            version: 1, logID: 1, chain: nil,
            durability: Durability(standbyNames: "s", isFlushed: true, writesFullPages: true),
            startedAt: startedAt, process: 7)
    }

    // MARK: Steps

    mutating func step() {
        switch random.below(100) {
        // Rare enough for the reader to be at the end when that is lost.
        case 0..<4: append(isReplicated: hasQuorum)
        case 4..<34: deliverRequest()
        case 34..<65: deliverAnswer()
        case 65..<75: advanceTime(by: Int64(random.below(random.happens(5) ? 3_500 : 400)))
        case 75..<78: perform(receive(.notified(byServerProcess: 7)))
        case 78..<88: fence()
        case 88..<92: restart()
        case 92 where random.happens(50): cut()
        case 93 where random.happens(30): crash()
        case 94 where random.happens(30): promote()
        case 95 where random.happens(50): loseTail()
        case 96 where random.happens(30): hasQuorum = false
        case 97: restoreQuorum()
        default: retire()
        }
    }

    mutating func settle() {
        restoreQuorum()
        for _ in 0..<2_000 {
            restart()
            fence()
            deliverRequest()
            deliverAnswer()
            perform(receive(.notified(byServerProcess: 7)))
            advanceTime(by: 10)
        }
    }

    private mutating func append(isReplicated: Bool) {
        let last = rows.last?.batch.position.last ?? 0
        nextChain += 1
        rows.append(
            Row(
                batch: LogBatch(
                    first: last + 1,
                    position: LogPosition(
                        last: last + 1 + Int64(random.below(3)), chain: nextChain), node: 1, at: 0,
                    records: [LogRecord(app: "a", .removal)]), isReplicated: isReplicated))
        // The standby has everything before what it has.
        if isReplicated { replicateAll() }
    }

    private mutating func fence() {
        guard isFenceRequested else { return }
        if hasLostTail, !isEnding, random.happens(50) { loseHistory() }
        guard !hasLostTail || reader.position == nil else { return }
        isFenceRequested = false
        if hasQuorum { replicateAll() }
        // Without a quorum the fence would wait.
        guard hasQuorum else { return isFenceRequested = true }
        perform(receive(.fenced(Self.identity(startedAt: startedAt))))
    }

    private mutating func cut() {
        guard isOpen else { return }
        close()
        perform(receive(.disconnected(.connectionLost(reason: "cut"))))
    }

    /// The server is killed and started again: a batch that waited is visible, and only there.
    private mutating func crash() {
        startedAt += 1
        endConnections()
        append(isReplicated: false)
    }

    /// The standby becomes the primary.
    private mutating func promote() {
        startedAt += 1
        endConnections()
        rows.removeAll { !$0.isReplicated }
    }

    /// A restored backup: the end of the log is gone, and others take its numbers.
    private mutating func loseTail() {
        guard rows.count > 2 else { return }
        startedAt += 1
        losses += 1
        endConnections()
        // A writer that knows less than the reader finds nothing.
        hasLostTail = random.happens(50)
        rows.removeLast(1 + random.below(min(rows.count - 1, 12)))
        for _ in 0..<random.below(15) { append(isReplicated: true) }
        replicateAll()
    }

    private mutating func endConnections() {
        perform(receive(.unfenced))
        isFenceRequested = true
        cut()
    }

    private mutating func restoreQuorum() {
        hasQuorum = true
        replicateAll()
    }

    private mutating func replicateAll() {
        for index in rows.indices { rows[index].isReplicated = true }
    }

    /// Retention drops batches that the reader has applied.
    private mutating func retire() {
        guard let position = reader.position, !isEnding else { return }
        let removable = rows.dropLast(2).prefix { $0.batch.position.last < position.last }.count
        guard removable > 0 else { return }
        let count = random.below(removable + 1)
        retired += rows.prefix(count).map(\.batch)
        rows.removeFirst(count)
    }

    /// Starts the node again, from the last of its batches that the log still has.
    private mutating func restart() {
        guard isEnding else { return }
        isEnding = false
        hasLostTail = false
        close()
        let there = Set(rows.map(\.batch.position))
        let start = applied.last { there.contains($0.position) }?.position
        applied.removeAll { $0.position.last > start?.last ?? -1 }
        reader = FeedReader(.quorum, after: start, at: now)
    }

    private mutating func deliverRequest() {
        guard isOpen, !requests.isEmpty else { return }
        let head = rows.last?.batch.position ?? LogPosition(last: 0, chain: 1)
        switch requests.removeFirst() {
        case .listen: answers.append(.answered(.success(.listening)))
        case .readStart: answers.append(.answered(.success(.started(at: startedAt))))
        case .readHead: answers.append(.answered(.success(.head(head))))
        case .readDurability:
            answers.append(
                .answered(
                    .success(
                        .durability(
                            Durability(
                                standbyNames: hasQuorum ? "s" : "", isFlushed: true,
                                writesFullPages: true)))))
        case .readBatches(let from, let through):
            let batches = rows.map(\.batch).filter {
                $0.position.last >= from && $0.position.last <= through
            }.prefix(3)
            answers += batches.map { .batch($0) }
            answers.append(.answered(.success(.batchesRead)))
        }
    }

    private mutating func deliverAnswer() {
        guard isOpen, !answers.isEmpty else { return }
        perform(receive(answers.removeFirst()))
    }

    private mutating func receive(_ event: FeedReader.Event) -> [FeedReader.Action] {
        reader.receive(event, at: now, using: &random)
    }

    private mutating func close() {
        isOpen = false
        requests = []
        answers = []
    }

    private mutating func advanceTime(by milliseconds: Int64) {
        now += milliseconds
        if let tick = reader.nextTick, tick <= now {
            perform(reader.tick(at: now, using: &random))
        }
    }

    private mutating func perform(_ actions: [FeedReader.Action]) {
        for action in actions {
            switch action {
            case .connect:
                isOpen = true
                perform(receive(.connected))
            case .disconnect: close()
            case .send(let sent): requests += sent
            case .requestFence: isFenceRequested = true
            case .apply(let batch): apply(batch)
            case .becomeUnready(.tailLost):
                lostTailsOfReader += 1
                loseHistory()
            case .requestNotification, .observeHead, .becomeReady, .becomeUnready: break
            }
        }
    }

    private mutating func apply(_ batch: LogBatch) {
        appliedCount += 1
        if let last = applied.last, batch.first != last.position.last + 1 {
            faults.append("a gap before \(batch.first)")
        }
        applied.append(batch)
    }

    /// The reader or the writer found another history than the node's.
    private mutating func loseHistory() {
        lostTails += 1
        if lostTails > losses { faults.append("a tail was lost without a fault") }
        if reader.position != applied.last?.position {
            faults.append("the reader is not where its batches end")
        }
        isEnding = true
    }

    // MARK: Judge

    func check() throws {
        var faults = faults
        if reader.position != rows.last?.batch.position { faults.append("the reader is behind") }
        let history = retired + rows.map(\.batch)
        if applied != history.suffix(applied.count) { faults.append("another history was applied") }
        guard faults.isEmpty else {
            throw TestFailure(Set(faults).sorted().joined(separator: "\n"))
        }
    }
}
