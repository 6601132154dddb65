import ClusterTestSupport
import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayPostgres

/// Gateways that begin from what others wrote.
@Suite(.enabled(if: PostgresServer.isInstalled)) struct SnapshotProcessTests {
    private let cluster: ClusterFixture
    private let gateways: ClusterGateways

    init() throws {
        cluster = try ClusterFixture(slice: 10)
        gateways = try ClusterGateways(cluster)
    }

    private func integer(_ sql: String) throws -> Int64 {
        try #require(try cluster.administration().rows(sql).first?.integer(0))
    }

    /// The position of the newest snapshot; 0 without one.
    private var newest: Int64 {
        get throws { try integer("SELECT coalesce(max(position), 0) FROM tg.snapshot_head") }
    }

    private func makeDue() throws {
        try cluster.execute(
            "UPDATE tg.snapshot_head SET written_at = written_at - interval '11 min'")
    }

    /// Waits for a snapshot of everything that is in the log; returns its position.
    private func snapshot() throws -> Int64 {
        try makeDue()
        try blockUntil("a snapshot of the whole log") {
            try newest == integer("SELECT max(last) FROM tg.log")
        }
        return try newest
    }

    /// Removes the slices that retention may remove; returns the floor.
    private func retain() throws -> Int64 {
        let connection = try cluster.connection(as: "node1")
        for slice in 0...(try integer("SELECT max(last) FROM tg.log") / 10) {
            _ = try connection.rows("SELECT tg.retain(\(slice))")
        }
        return try integer("SELECT floor FROM tg.log_floor")
    }

    /// Posts a change, after the slices ahead were made, which a node does every half a minute.
    private func change(_ character: String, _ id: String, at node: GatewayProcess) throws {
        try cluster.connection(as: "node1").execute("SELECT tg.slice()")
        let answer = try gateways.change(character, id: id, at: node)
        guard answer.status == 202 else { throw TestFailure(answer.text) }
    }

    private func register(_ client: String, _ characters: [String], at node: GatewayProcess) throws
        -> String
    {
        try #require(
            try gateways.register(client, characters, at: node)["cursor"]?.stringValue)
    }

    private func expectStart(of node: GatewayProcess, at position: Int64) throws {
        let line = node.standardErrorTail.split(separator: "\n").first {
            $0.contains("began from a snapshot")
        }
        #expect(line?.contains("\(position)") == true, "\(node.standardErrorTail)")
    }

    @Test func `a rolling restart tells each client exactly what is stale`() throws {
        let nodes = [try gateways.start(1), try gateways.start(2)]
        #expect(try gateways.putCatalog(nodes[0]) == 201)
        let old = try register("phone", ["panda", "hero"], at: nodes[0])
        let quiet = try register("tablet", ["quiet"], at: nodes[1])
        try change("panda", "old", at: nodes[0])
        for number in 0..<40 { try change("other", "\(number)", at: nodes[number % 2]) }
        let position = try snapshot()
        // The log begins above the cursors; the snapshot knows everything since its beginning.
        #expect(try retain() > 30)
        #expect(try integer("SELECT floor FROM tg.snapshot_head ORDER BY position DESC") == 0)
        try change("hero", "new", at: nodes[1])

        let stream = try gateways.stream("phone", from: old, at: nodes[1])
        #expect(try stream.next().map { Set($0) } == ["panda", "hero"])
        var cursor = try #require(stream.cursor)
        stream.close()
        for (index, node) in nodes.enumerated() {
            let other = nodes[1 - index]
            #expect(node.terminate(seconds: Patience.seconds) == .status(0))
            try change("panda", "during \(index)", at: other)
            try node.start()
            try expectStart(of: node, at: position)
            for place in [node, other] {
                #expect(
                    try Set(gateways.poll("phone", since: old, at: place).stale)
                        == ["panda", "hero"])
                #expect(try gateways.poll("tablet", since: quiet, at: place).stale == [])
            }
            let resumed = try gateways.stream("phone", from: cursor, at: node)
            #expect(try resumed.next() == ["panda"])
            try change("hero", "after \(index)", at: node)
            #expect(try resumed.next() == ["hero"])
            cursor = try #require(resumed.cursor)
            resumed.close()
        }
        // Without the snapshots a node knows nothing of what lies below the log's floor.
        try cluster.execute("DELETE FROM tg.snapshot_head")
        nodes[0].kill()
        nodes[1].kill()
        try nodes[0].start()
        #expect(try gateways.poll("phone", since: old, at: nodes[0]).stale == ["all"])
    }

    @Test func `who is killed while it writes leaves the earlier snapshot to the next`() throws {
        let one = try gateways.start(1)
        #expect(try gateways.putCatalog(one) == 201)
        let old = try register("phone", ["panda"], at: one)
        for number in 0..<25 { try change("other", "\(number)", at: one) }
        let earlier = try snapshot()
        #expect(try retain() > 10)
        try change("panda", "new", at: one)
        let blocker = try cluster.administration()
        try makeDue()
        // The head waits for this transaction, behind the pieces.
        try blocker.execute("BEGIN; LOCK TABLE tg.snapshot_head IN EXCLUSIVE MODE")
        let waits = """
            FROM pg_locks WHERE NOT granted AND relation = 'tg.snapshot_head'::regclass
              AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            """
        try blockUntil("the head is being written") { try integer("SELECT count(*) \(waits)") > 0 }
        #expect(
            try integer("SELECT count(*) FROM tg.snapshot WHERE position > \(earlier)") > 0)
        one.kill()
        try cluster.execute("SELECT pg_terminate_backend(pid) \(waits)")
        try blocker.execute("ROLLBACK")

        let two = try gateways.start(2)
        try expectStart(of: two, at: earlier)
        #expect(try gateways.poll("phone", since: old, at: two).stale == ["panda"])
        // The task is another node's once the lease of the dead one has run out.
        let later = try snapshot()
        #expect(later > earlier)
        try one.start()
        try expectStart(of: one, at: later)
        #expect(try gateways.poll("phone", since: old, at: one).stale == ["panda"])

        try cluster.execute(
            "UPDATE tg.snapshot_head SET checksum = '\\x00' WHERE position = \(later)")
        try one.restart()
        try expectStart(of: one, at: earlier)
        #expect(one.standardErrorTail.contains("\(later): wrong checksum"))
        #expect(try gateways.poll("phone", since: old, at: one).stale == ["panda"])
    }
}
