import Testing
import WidgetModel

@testable import GatewayPostgres

@Suite struct PartitionKeeperTests {
    private static let position = LogPosition(last: 3, chain: 8)
    private static let durable = Durability(
        standbyNames: "s", isFlushed: true, writesFullPages: true)

    private static func identity(chain: UInt128?) -> PartitionAnswer {
        .identified(
            ServerIdentity(
                version: ClusterSchema.version, logID: 7, chain: chain, durability: durable,
                startedAt: 1))
    }

    private var random = SplitMix64(seed: 1)
    private var keeper: PartitionKeeper

    init() {
        keeper = PartitionKeeper(
            .quorum, position: Self.position, share: PartitionShare(of: [1, 2]), at: 0,
            using: &random)
    }

    private mutating func answer(
        _ answers: PartitionAnswer..., at now: Int64
    ) -> [PartitionKeeper.Action] {
        answers.flatMap { keeper.receive(.answered(.success($0)), at: now, using: &random) }
    }

    private static func renewal(_ owned: Partition...) -> PartitionAnswer {
        .renewed(LeaseRenewal(node: 1, owned: owned, beats: [1: 1], serving: [1]))
    }

    /// Opens a connection and answers its first request.
    private mutating func identify(chain: UInt128?, at now: Int64) -> [PartitionKeeper.Action] {
        _ = keeper.tick(at: now, using: &random)
        #expect(
            keeper.receive(.connected, at: now, using: &random)
                == [.send([.identify(at: Self.position.last)])])
        return answer(Self.identity(chain: chain), at: now)
    }

    @Test mutating func `a position that is reached before the answer is not compared`() {
        _ = keeper.tick(at: 0, using: &random)
        _ = keeper.receive(.connected, at: 0, using: &random)
        keeper.advance(to: LogPosition(last: 4, chain: 9))
        let actions = answer(Self.identity(chain: Self.position.chain), at: 0)
        #expect(actions == [])
    }

    /// Has partition 1 loaded.
    private mutating func own(at now: Int64) {
        _ = keeper.observeWriter(startedAt: 1, at: now, using: &random)
        _ = keeper.serve(at: now)
        _ = identify(chain: Self.position.chain, at: now)
        _ = answer(.done, Self.renewal(), .durability(Self.durable), at: now)
        let one = Partition(number: 1, generation: 1)
        _ = answer(.taken([one]), at: now)
        for rows: PartitionPortion.Rows in [.registrations([]), .states([], clear: 0)] {
            _ = answer(
                .loaded(PartitionPortion(partition: one, asOf: 3, rows: rows), isLast: true),
                at: now)
        }
        #expect(keeper.holdings[1]?.stage == .owned)
    }

    @Test mutating func nothingIsSentBeforeTheChainWasFoundAndTheWriterIsThere() {
        _ = keeper.note(
            heard: [
                HeardRow(
                    client: PartitionedClient(part: 1, name: ClientName(app: "a", client: "c")),
                    isOpen: true, upTo: 3)
            ], at: 0)
        #expect(identify(chain: Self.position.chain, at: 0) == [])
        let actions = keeper.observeWriter(startedAt: 1, at: 5, using: &random)
        guard case .send(let requests) = actions.first, actions.count == 1 else {
            Issue.record("\(actions)")
            return
        }
        #expect(requests.dropFirst() == [.renew(serves: false, load: nil), .readDurability])
        // Before the renewal is durable nothing follows.
        #expect(answer(.done, Self.renewal(), at: 6) == [])
        let ready = answer(.durability(Self.durable), at: 8)
        #expect(ready.prefix(2) == [.becomeReady, .extendLease(until: 7_005)])
        guard case .send(let written) = ready.last, case .hear(let rows) = written.first else {
            Issue.record("\(ready)")
            return
        }
        #expect(rows.count == 1)
    }

    @Test mutating func anotherHistoryEndsEverything() {
        own(at: 0)
        _ = keeper.receive(
            .disconnected(.connectionLost(reason: "")), at: 10, using: &random)
        #expect(keeper.holdings[1] != nil)
        let actions = identify(chain: 9, at: 3_000)
        #expect(
            actions == [
                .disconnect, .becomeUnready(.tailLost), .suspend,
                .lose([Partition(number: 1, generation: 1)]),
            ])
        #expect(keeper.nextTick == nil)
    }

    @Test mutating func aRenewalWithoutAStandbyIsNone() {
        own(at: 0)
        _ = keeper.tick(at: 3_000, using: &random)
        let empty = Durability(standbyNames: "", isFlushed: true, writesFullPages: true)
        let actions = answer(
            Self.renewal(Partition(number: 1, generation: 1)), .durability(empty), at: 3_010)
        #expect(actions.contains(.disconnect))
        #expect(!actions.contains { if case .extendLease = $0 { true } else { false } })
        // The node pushes for its partitions until the lease of the first renewal ends.
        #expect(keeper.leaseEnd == 7_000)
        #expect(keeper.tick(at: 7_000, using: &random).contains(.suspend))
    }

    @Test mutating func anAnswerThatWaitedForAStoppedProcessExtendsNothing() {
        own(at: 0)
        _ = keeper.tick(at: 3_000, using: &random)
        let one = Partition(number: 1, generation: 1)
        let actions = answer(Self.renewal(one), .durability(Self.durable), at: 12_000)
        #expect(actions.first == .suspend)
        #expect(!actions.contains { if case .extendLease = $0 { true } else { false } })
        // The renewal that follows is of now.
        #expect(
            actions.contains { action in
                guard case .send(let requests) = action else { return false }
                return requests.contains(.renew(serves: true, load: nil))
            })
    }

    @Test mutating func aClearSequenceIsWrittenWithTheLastOfItsRows() {
        own(at: 0)
        let one = Partition(number: 1, generation: 1)
        // Its first rows take a flush of their own.
        _ = keeper.note(told: [Self.row(0)], of: one, at: 10)
        _ = answer(.flushed(lost: []), at: 20)
        _ = keeper.note(told: (1...1_500).map(Self.row), of: one, at: 30)
        keeper.note(clear: 9, of: one)
        let first = flushes(in: keeper.tick(at: 500, using: &random))
        #expect(first.map(\.rows.count) == [1_000])
        #expect(first.map(\.owned) == [[.init(partition: one, clear: nil)]])
        // The rest follows at once.
        let second = flushes(in: answer(.flushed(lost: []), at: 510))
        #expect(second.map(\.rows.count) == [500])
        #expect(second.map(\.owned) == [[.init(partition: one, clear: 9)]])
        // Partitions of another node are forgotten.
        #expect(answer(.flushed(lost: [1]), at: 520).contains(.lose([one])))
        #expect(keeper.note(told: [Self.row(2)], of: one, at: 530) == [])
    }

    @Test mutating func aPartitionOfAnotherGenerationIsAnother() {
        own(at: 0)
        _ = keeper.tick(at: 3_000, using: &random)
        let next = Partition(number: 1, generation: 2)
        let actions = answer(Self.renewal(next), .durability(Self.durable), at: 3_010)
        #expect(actions.contains(.lose([Partition(number: 1, generation: 1)])))
        #expect(actions.contains(.acquire(next)))
    }

    @Test mutating func partitionsThatAreSettledOneByOneAreReleasedTogether() {
        own(at: 0)
        let partitions = [1, 2].map { Partition(number: $0, generation: 1) }
        keeper.holdings[2] = PartitionHolding(generation: 1, stage: .owned)
        #expect(keeper.drain(at: 10).contains(.handOver(partitions)))
        #expect(keeper.settle(partitions[0], at: 20).last == .send([.release([partitions[0]])]))
        #expect(keeper.settle(partitions[1], at: 20) == [])
        // The renewal that said that the node drains, then the release.
        _ = answer(
            .renewed(
                LeaseRenewal(node: 1, owned: partitions, beats: [1: 2], serving: [])),
            .durability(Self.durable), at: 30)
        #expect(answer(.done, at: 30).last == .send([.release([partitions[1]])]))
        #expect(
            answer(.done, at: 40).last
                == .send([.renew(serves: false, load: nil), .readDurability]))
        let end = answer(
            .renewed(LeaseRenewal(node: 1, owned: [], beats: [1: 3], serving: [])),
            .durability(Self.durable), at: 50)
        #expect(end.contains(.finishDraining))
    }

    private static func row(_ number: Int) -> PushStateRow {
        PushStateRow(
            name: ClientName(app: "a", client: "\(number)"), told: 5, isOwed: false, payload: [])
    }

    private func flushes(in actions: [PartitionKeeper.Action]) -> [FlushCall] {
        actions.flatMap { action -> [FlushCall] in
            guard case .send(let requests) = action else { return [] }
            return requests.compactMap { if case .flush(let call) = $0 { call } else { nil } }
        }
    }

    @Test mutating func aConnectionToAnotherServerThanTheWritersIsGivenUp() {
        own(at: 0)
        #expect(keeper.observeWriter(startedAt: nil, at: 100, using: &random) == [])
        let actions = keeper.observeWriter(startedAt: 2, at: 200, using: &random)
        #expect(actions.first == .disconnect)
    }

    @Test func evidenceThatWaitsHasTheHighestCursorAndTheNewestStream() {
        let client = PartitionedClient(part: 1, name: ClientName(app: "a", client: "c"))
        func row(_ isOpen: Bool, _ upTo: Int64) -> HeardRow {
            HeardRow(client: client, isOpen: isOpen, upTo: upTo)
        }
        var buffer = HeardBuffer()
        buffer.note([row(true, 5), row(false, 4)])
        #expect(buffer.nextPortion(countMax: 9) == [row(false, 5)])
        buffer.note([row(true, 3)])
        buffer.restore()
        #expect(buffer.nextPortion(countMax: 9) == [row(true, 5)])
        buffer.confirm()
        #expect(buffer.isEmpty)
    }

    @Test func pushStateIsWrittenAgainUnlessARenewalFollowedIt() {
        func row(_ client: String, _ told: Int64) -> PushStateRow {
            PushStateRow(
                name: ClientName(app: "a", client: client), told: told, isOwed: false, payload: [])
        }
        func portion(_ buffer: inout PushStateBuffer) -> [Int64] {
            buffer.nextPortion(countMax: 9).map(\.row.told).sorted()
        }
        var buffer = PushStateBuffer()
        buffer.note([row("a", 1), row("b", 2), row("b", 1)], of: 1)
        #expect(portion(&buffer) == [1, 2])
        buffer.confirm()
        buffer.beginRenewal()
        buffer.note([row("b", 3)], of: 1)
        #expect(portion(&buffer) == [3])
        buffer.confirm()
        buffer.note([row("c", 4)], of: 2)
        #expect(portion(&buffer) == [4])
        buffer.note([row("c", 5)], of: 2)
        // Everything since the renewal that ended last, newest first.
        var crashed = buffer
        crashed.restoreAll()
        #expect(portion(&crashed) == [1, 3, 5])
        buffer.endRenewal()
        buffer.restoreAll()
        #expect(portion(&buffer) == [3, 5])
        buffer.removeAll(of: 2)
        buffer.restoreAll()
        #expect(portion(&buffer) == [3])
        #expect(buffer.isEmpty)
    }
}
