import ClusterTestSupport
import Foundation
import GatewayTestSupport
import Testing

@testable import GatewayPostgres

@Suite(.enabled(if: PostgresServer.isInstalled)) struct PostgresPartitionsTests {
    private static let total = Partition.numbers.count

    private static func row(
        _ client: String, told: Int64, isOwed: Bool = false
    ) -> PushStateRow {
        PushStateRow(
            name: ClientName(app: "app", client: client), told: told, isOwed: isOwed,
            payload: [UInt8(truncatingIfNeeded: told)])
    }

    /// A cluster with registrations and push state: two portions of each in partition 1.
    private func populated(hasServer: Bool = false) throws -> (ClusterFixture, Int64) {
        let cluster = try ClusterFixture(hasServer: hasServer)
        try cluster.execute(
            """
            INSERT INTO tg.registration SELECT 1, 'app', 'c' || n, n, 0, 7, '{}', '{}', 0, 0, '\\x01'
              FROM generate_series(1, 700) n;
            INSERT INTO tg.push_state SELECT 1, 'app', 'c' || n, n, false, '\\x02'
              FROM generate_series(1, 501) n;
            UPDATE tg.owner SET clear = 3
            """)
        return (cluster, try cluster.startedAt())
    }

    @Test func aNodeLoadsAllPartitionsAndHandsHalfOfThemOver() throws {
        let (cluster, startedAt) = try populated()
        let first = try PartitionFixture(
            try cluster.address(user: "node1"), startedAt: startedAt)
        #expect(!first.partitions.mayPush)
        first.partitions.serve()
        try first.wait(forCount: Self.total)
        #expect(first.partitions.mayPush)
        #expect(first.registrations(of: 1).count == 700)
        #expect(Set(first.states(of: 1).map(\.told)).count == 501)
        let one = try #require(first.loaded.first { $0.number == 1 })
        let seven = try #require(first.loaded.first { $0.number == 7 })
        first.partitions.note(told: [Self.row("c1", told: 1_090)], of: one)
        first.partitions.note(clear: 80, of: one)
        first.partitions.note(told: [Self.row("new", told: 1_091, isOwed: true)], of: seven)
        // Its generation is not that of the node.
        first.partitions.note(
            told: [Self.row("c2", told: 1_099)], of: Partition(number: 1, generation: 9))
        try cluster.wait(
            for: 1_090 + 1_091, "SELECT sum(told)::bigint FROM tg.push_state WHERE told > 1000")

        let second = try PartitionFixture(
            try cluster.address(user: "node2"), startedAt: startedAt)
        second.partitions.serve()
        let share = Partition.numbers.filter { PartitionShare.owner(of: $0, among: [1, 2]) == 2 }
        try second.wait(forCount: share.count)
        #expect(second.numbers == Set(share))
        try first.wait(forCount: Self.total - share.count)
        // Drains: the other has all, and what was noted last.
        let partition = try #require(first.loaded.first { $0.number < Partition.count })
        first.partitions.note(told: [Self.row("last", told: 92)], of: partition)
        first.partitions.note(clear: 93, of: partition)
        first.partitions.drain()
        try first.wait { if case .drained = $0 { true } else { nil } }
        try second.wait(forCount: Self.total)
        #expect(second.states(of: partition.number).contains(Self.row("last", told: 92)))
        try cluster.wait(
            for: 93, "SELECT clear FROM tg.owner WHERE part = \(partition.number)")
        #expect(first.loaded.isEmpty)
    }

    @Test func anOwnerThatWasStoppedPastItsLeaseIsRefusedAtItsFirstFlush() throws {
        let (cluster, startedAt) = try populated()
        // Its connection is stopped, as the process would be: it neither renews nor hears.
        let driver = SessionDriver(
            try cluster.address(user: "node1"), preparing: PartitionRequest.statements)
        try driver.open()
        func answer(_ request: PartitionRequest) throws -> PartitionAnswer {
            let answer = try driver.answers(request.query)[0]
            return try request.answer(try answer.get())
        }
        _ = try answer(.attach(process: 5, isForced: true))
        let began = ContinuousClock.now
        guard case .renewed(let renewal) = try answer(.renew(serves: true, load: "{\"a\":1}"))
        else { throw TestFailure("not renewed") }
        #expect(renewal.node == 1)
        #expect(renewal.serving == [1])
        #expect(
            try answer(.take([1, 2], silent: []))
                == .taken([
                    Partition(number: 1, generation: 1), Partition(number: 2, generation: 1),
                ]))
        let other = try PartitionFixture(
            try cluster.address(user: "node2"), startedAt: startedAt)
        other.partitions.serve()
        // All but what the stopped one has, then that, too: a lease, a round and a second.
        try other.wait(forCount: Self.total)
        #expect(ContinuousClock.now - began > .seconds(10))
        let flush = PartitionRequest.flush(
            FlushCall(
                owned: [
                    .init(partition: Partition(number: 1, generation: 1), clear: 500),
                    .init(partition: Partition(number: 2, generation: 1), clear: nil),
                ], rows: [.init(part: 1, state: Self.row("c1", told: 400))]))
        #expect(try answer(flush) == .flushed(lost: [1, 2]))
        let row = try #require(
            try cluster.administration().rows(
                """
                SELECT told, clear FROM tg.push_state JOIN tg.owner USING (part)
                WHERE part = 1 AND client = 'c1'
                """
            ).first)
        #expect(try row.integer(0) == 1)
        #expect(try row.integer(1) == 3)
    }

    @Test func ofTwoProcessesUnderOneLoginTheLaterOneHasThePartitions() throws {
        let (cluster, startedAt) = try populated()
        let address = try cluster.address(user: "node1")
        let first = try PartitionFixture(address, startedAt: startedAt)
        first.partitions.serve()
        try first.wait(forCount: Self.total)
        let second = try PartitionFixture(address, startedAt: startedAt)
        second.partitions.serve()
        try second.wait(forCount: Self.total)
        try first.wait(forCount: 0)
        #expect(!first.partitions.mayPush)
        try first.wait { $0 == .unready(.disconnected(.fenced)) ? true : nil }
        let generations = Set(second.loaded.map(\.generation))
        #expect(generations == [2])
        // It stays so while the later one lives.
        try cluster.wait(
            for: Int64(Self.total), "SELECT count(*) FROM tg.owner WHERE generation = 2")
    }

    @Test func evidenceIsReadFromAllNodesAndACrashOfTheServerEmptiesItOnly() throws {
        let (cluster, startedAt) = try populated(hasServer: true)
        let owner = try PartitionFixture(
            try cluster.address(user: "node1"), startedAt: startedAt)
        let server = try PartitionFixture(
            try cluster.address(user: "node2"), startedAt: startedAt)
        owner.partitions.serve()
        try owner.wait(forCount: Self.total)
        try server.wait { $0 == .ready ? true : nil }
        let clients = ["c1", "c2", "c3"].map {
            PartitionedClient(part: 1, name: ClientName(app: "app", client: $0))
        }
        server.partitions.note(heard: [
            HeardRow(client: clients[0], isOpen: false, upTo: 9),
            HeardRow(client: clients[1], isOpen: true, upTo: 4),
        ])
        owner.partitions.note(heard: [HeardRow(client: clients[1], isOpen: false, upTo: 5)])
        try cluster.wait(for: 3, "SELECT count(*) FROM tg.heard")
        let evidence = try #require(try owner.lookUp(clients[0], clients[1], clients[2]))
        #expect(
            clients.map { evidence[$0] } == [
                DeliveryEvidence(upTo: 9, isOpen: false), DeliveryEvidence(upTo: 5, isOpen: true),
                DeliveryEvidence.none,
            ])
        let one = try #require(owner.loaded.first { $0.number == 1 })
        owner.partitions.note(told: [Self.row("c1", told: 900)], of: one)
        try cluster.wait(for: 900, "SELECT max(told) FROM tg.push_state")
        // Kills the server at once: the flush may be lost, and is then repeated.
        cluster.primary.kill()
        try cluster.primary.start()
        for node in [owner, server] { node.observe(startedAt: try cluster.startedAt()) }
        try cluster.wait(for: 900, "SELECT max(told) FROM tg.push_state")
        try cluster.wait(for: 0, "SELECT count(*) FROM tg.heard")
        #expect(try cluster.administration().rows("SELECT 1 FROM tg.push_state").count == 501)
        #expect(owner.loaded.count == Self.total)
        #expect(owner.loaded.contains(one))
    }

    @Test func nothingIsWrittenOnAServerWithAnotherHistoryOrWithoutItsWriter() throws {
        let (cluster, startedAt) = try populated()
        let address = try cluster.address(user: "node1")
        let node = try PartitionFixture(
            address, from: LogPosition(last: 0, chain: 9), startedAt: startedAt)
        node.partitions.serve()
        try node.wait { $0 == .unready(.tailLost) ? true : nil }
        let stray = try PartitionFixture(
            try cluster.address(user: "node2"), startedAt: startedAt + 1)
        stray.partitions.serve()
        try stray.wait { report -> Bool? in
            guard case .unready(.disconnected(.connectionLost(let reason))) = report else {
                return nil
            }
            return reason.contains("another server") ? true : nil
        }
        let quorum = try PartitionFixture(
            try cluster.address(user: "node2"), .quorum, startedAt: startedAt)
        try quorum.wait { if case .unready(.notDurable) = $0 { true } else { nil } }
        try cluster.wait(for: 0, "SELECT count(*) FROM tg.node_seen")
    }
}
