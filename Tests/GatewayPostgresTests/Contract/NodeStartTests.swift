import ClusterTestSupport
import FleetAdministration
import GatewayCore
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayFleet
@testable import GatewayPostgres

/// The state that a node begins with.
@Suite(.enabled(if: PostgresServer.isInstalled)) struct NodeStartTests {
    private typealias Running = (node: FleetNode, stop: @Sendable () async throws -> Void)

    private let cluster: ClusterFixture

    init() throws { cluster = try ClusterFixture(slice: 10) }

    private func integers(_ sql: String) throws -> [Int64] {
        try cluster.administration().rows(sql).map { try $0.integer(0) }
    }

    /// Returns everything that a node knows of keys, catalogs and batches.
    private func content(_ node: FleetNode) async -> NodeSnapshot.Content {
        await withCheckedContinuation { continuation in
            node.follower.copy { continuation.resume(returning: $0.content) }
        }
    }

    /// Has a node write a snapshot, however new the last one is; returns its position.
    @discardableResult
    private func write(_ node: FleetNode) async throws -> Int64 {
        try await eventually("the node has the lease") { node.leases.holds(.snapshot) }
        try cluster.execute(
            "UPDATE tg.snapshot_head SET written_at = written_at - interval '11 min'")
        let outcome = await node.snapshots.writeIfDue()
        guard case .written? = outcome else { throw TestFailure("not written: \(outcome as Any)") }
        return try #require(try integers("SELECT max(position) FROM tg.snapshot_head").first)
    }

    /// Puts a catalog of one kind that depends on entities with the client's hero.
    private func put(_ entities: [String], at node: EngineFixture) async throws {
        let rules = entities.map { "{ entity: \($0), match: { id: $client.hero } }" }
        let body = """
            app: \(EngineFixture.app)
            entities: { Hero: { properties: [health] }, Villain: { properties: [health] } }
            widgets:
              - { kind: hero, configuration: static, families: [systemSmall],
                  dependsOn: [\(rules.joined(separator: ", "))] }
            """
        let catalog = try Catalog(
            JSONValue(yaml: body), app: EngineFixture.app, limits: Limits())
        _ = try await node.changes.putCatalog(
            catalog, contentType: "application/yaml", body: Array(body.utf8), .none)
    }

    private func post(_ ids: [String], at node: EngineFixture) async throws -> UInt64 {
        try await node.changes.post(ids.map { EngineFixture.event($0) }, app: EngineFixture.app)
            .sequence
    }

    /// Removes the slices that retention may remove; returns the floor.
    private func retain() throws -> Int64 {
        let connection = try cluster.connection(as: "node1")
        let head = try #require(try integers("SELECT max(last) FROM tg.log").first)
        // From the newest slice that is allowed.
        var floor: Int64 = 0
        for slice in 0...head / 10 {
            floor = try #require(
                try connection.rows("SELECT tg.retain(\(slice))").first?.integer(0))
        }
        while true {
            let removed = try connection.rows("SELECT tg.retire()").first
            guard let removed, !removed.isNull(0) else { return floor }
        }
    }

    @Test func `a node begins from a snapshot and knows as much as the one that wrote it`()
        async throws
    {
        let first = try await EngineFixture.fleetNode(1, of: cluster)
        let engine = EngineFixture(first.node.engine) {}
        try await put(["Hero", "Villain"], at: engine)
        _ = try await engine.register("phone")
        let before = engine.log.head
        let owed = try await post(["a", "b"], at: engine)
        // From here on the rule that the change met is retired.
        try await put(["Villain"], at: engine)
        let phone = try #require(engine.registry.record(EngineFixture.key("phone")))
        for number in 0..<12 { _ = try await post(["\(number)"], at: engine) }
        let position = try await write(first.node)
        #expect(position == first.node.follower.position)
        // What lies before it is gone, but for the batches of its slice.
        let floor = try retain()
        #expect(floor > owed && floor <= position)
        _ = try await post(["x"], at: engine)
        let known = await content(first.node)

        let keys = try await EngineFixture.keys(of: 2, of: cluster)
        let start = try #require(keys.removeStart())
        #expect(start.report.misfits == [:] && start.report.age != nil)
        #expect(start.report.position == position && start.report.floor == 0)
        // Until the node follows the log, it is kept for it.
        #expect(
            try integers("SELECT position FROM tg.reservation WHERE node = 2") == [position])
        let shard = start.state(
            EngineConfiguration(limits: Limits(), streamsPerClient: 4), keys.hashes.store
        ).shard
        func stale(since sequence: UInt64) throws -> StaleSet {
            try #require(
                shard.poll(phone, app: EngineFixture.app, since: .after(sequence), kinds: nil))
        }
        #expect(try stale(since: before).names.map(\.kind) == ["hero"])
        #expect(try stale(since: owed - 1).names.map(\.kind) == ["hero"])
        #expect(try stale(since: owed).isEmpty)
        #expect(try stale(since: UInt64(position)).isEmpty)

        let second = try await EngineFixture.fleetNode(2, of: cluster)
        #expect(await content(second.node) == known)
        try await waitForNoReservation()
        // Cursors of batches that the log does not have any more are judged by their tags.
        let cursor = first.node.engine.cursors.text(before)
        #expect(second.node.engine.cursors.judge(cursor).point == .after(before))
        // Both go on alike.
        let both = EngineFixture(second.node.engine) {}
        try await put(["Hero"], at: both)
        let last = try await post(["y"], at: both)
        #expect(await first.node.follower.reached(last))
        #expect(await content(second.node) == content(first.node))
        try await first.stop()
        try await second.stop()
    }

    private func waitForNoReservation() async throws {
        try await eventually("no reservation is left") {
            try integers("SELECT node FROM tg.reservation").isEmpty
        }
    }

    @Test func `a snapshot that does not fit is passed over, and the node knows the same`()
        async throws
    {
        let first = try await EngineFixture.fleetNode(1, of: cluster)
        let engine = EngineFixture(first.node.engine) {}
        try await put(["Hero"], at: engine)
        var positions: [Int64] = []
        for number in 0..<2 {
            _ = try await post(["\(number)"], at: engine)
            positions.append(try await write(first.node))
        }
        _ = try await post(["x"], at: engine)
        let known = await content(first.node)
        try await first.stop()
        try cluster.execute(
            """
            CREATE TABLE saved_head AS SELECT * FROM tg.snapshot_head;
            CREATE TABLE saved_catalog AS SELECT * FROM tg.catalog
            """)
        func expectStart(
            at position: Int64, _ misfits: [Int64: SnapshotReader.Misfit], after sql: String
        ) async throws {
            try cluster.execute(sql)
            let keys = try await EngineFixture.keys(of: 2, of: cluster)
            let report = try #require(keys.removeStart()).report
            #expect(report.position == position, "\(sql)")
            #expect(report.misfits == misfits, "\(sql)")
            #expect((report.age == nil) == (position == 0), "\(sql)")
            let (node, stop) = try await EngineFixture.fleetNode(2, of: cluster)
            #expect(await content(node) == known, "\(sql)")
            try await stop()
            try cluster.execute(
                """
                DELETE FROM tg.snapshot_head; INSERT INTO tg.snapshot_head TABLE saved_head;
                """)
        }
        let (older, newest) = (positions[0], positions[1])
        try await expectStart(at: newest, [:], after: "SELECT 1")
        try await expectStart(
            at: older, [newest: .checksum],
            after: "UPDATE tg.snapshot_head SET checksum = '\\x00' WHERE position = \(newest)")
        try await expectStart(
            at: older, [newest: .otherHistory],
            after: """
                UPDATE tg.snapshot_head SET chain = '\\x000102030405060708090a0b0c0d0e0f'
                WHERE position = \(newest)
                """)
        try await expectStart(
            at: 0, [newest: .format(2), older: .format(2)],
            after: "UPDATE tg.snapshot_head SET format = 2")
        try await expectStart(at: 0, [:], after: "DELETE FROM tg.snapshot_head")
        // Nor does one that has other catalogs than the log.
        try cluster.execute("DELETE FROM tg.catalog")
        let keys = try await EngineFixture.keys(of: 2, of: cluster)
        let report = try #require(keys.removeStart()).report
        #expect(report.misfits == [newest: .malformed, older: .malformed])
        #expect(report.position == 0)
    }

    @Test func `a node that knows less replaces no snapshot for an hour`() async throws {
        let first = try await EngineFixture.fleetNode(1, of: cluster)
        let engine = EngineFixture(first.node.engine) {}
        try await put(["Hero"], at: engine)
        for number in 0..<24 { _ = try await post(["\(number)"], at: engine) }
        let position = try await write(first.node)
        let floor = try retain()
        await first.node.leases.drain()
        // Written by a newer program, which this node does not read.
        try cluster.execute("UPDATE tg.snapshot_head SET format = 2")
        let (node, stop) = try await EngineFixture.fleetNode(2, of: cluster)
        try cluster.execute("UPDATE tg.snapshot_head SET format = 1")
        _ = try await post(["x"], at: EngineFixture(node.engine) {})
        #expect(await content(node).floor == floor && floor > 0)
        try await eventually("the node has the lease") { node.leases.holds(.snapshot) }
        for minutes in [11, 48] {
            #expect(await node.snapshots.writeIfDue() == nil)
            try cluster.execute(
                """
                UPDATE tg.snapshot_head SET written_at = written_at - interval '\(minutes) min'
                """)
        }
        #expect(await node.snapshots.writeIfDue() == nil)
        #expect(try integers("SELECT position FROM tg.snapshot_head") == [position])
        #expect(try await write(node) > position)
        try await first.stop()
        try await stop()
    }

    @Test func `a snapshot of a node that loses its task is never read`() async throws {
        let (node, stop) = try await EngineFixture.fleetNode(1, of: cluster)
        let engine = EngineFixture(node.engine) {}
        try await put(["Hero"], at: engine)
        let position = try await write(node)
        _ = try await post(["a"], at: engine)
        try cluster.execute(
            "UPDATE tg.snapshot_head SET written_at = written_at - interval '11 min'")
        // The pieces wait for this transaction, for a second at most.
        let blocker = try cluster.administration()
        try blocker.execute("BEGIN; LOCK TABLE tg.snapshot IN EXCLUSIVE MODE")
        async let outcome = node.snapshots.writeIfDue()
        try await waitForLock()
        async let drained: Void = node.leases.drain()
        try await eventually("the task is another node's") { !node.leases.holds(.snapshot) }
        try blocker.execute("ROLLBACK")
        let ended = await outcome
        #expect(ended == .stopped)
        #expect(try integers("SELECT position FROM tg.snapshot_head") == [position])
        try await waitForNoReservation()
        #expect(await node.snapshots.writeIfDue() == nil)
        await drained
        try await stop()
    }

    private func waitForLock() async throws {
        let sql = """
            SELECT 1::bigint FROM pg_locks WHERE NOT granted
              AND relation = 'tg.snapshot'::regclass
              AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            """
        try await eventually("a piece waits") { try !integers(sql).isEmpty }
    }

    @Test func `the status compares the versions that nodes report`() async throws {
        func report(_ node: Int, _ load: String) throws {
            try cluster.execute(
                """
                INSERT INTO tg.node_seen VALUES (\(node), clock_timestamp(), clock_timestamp(),
                  '\(load)', 1, 1) ON CONFLICT (node) DO UPDATE SET load = excluded.load
                """)
        }
        func advice() throws -> [String] {
            try ClusterAdministration(database: cluster.url()).status().advice
                .filter { $0.contains("different versions") }
        }
        func load(_ hash: String, at position: Int = 7, floor: Int = 0) -> String {
            "{\"windowPosition\": \(position), \"windowFloor\": \(floor), \"windowHash\": \"\(hash)\"}"
        }
        try report(1, load("ff"))
        for equal in [load("ff"), load("fe", at: 8), load("fe", floor: 1), "[]", "7", load("x")] {
            try report(2, equal)
            #expect(try advice().isEmpty, "\(equal)")
        }
        try report(2, load("fe"))
        #expect(try advice().count == 1)
    }
}
