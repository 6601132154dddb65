import ClusterTestSupport
import Foundation
import GatewayTestSupport
import Testing

@testable import GatewayCluster
@testable import GatewayStorage

/// Nodes of a cluster on a real server: stores alone, without gateways around them.
@Suite(.enabled(if: PostgresServer.isInstalled), .repeatedAfterStalls)
struct ClusterNodeTests {
    /// Does some of everything.
    private func fill(_ node: TestNode) async throws {
        try await node.append("first")
        _ = try await node.store.write(cost: 1) { transaction in
            let sequence = try transaction.append(
                app: "app", type: .catalog, source: nil, eventID: nil, acceptedAt: 2,
                payload: Data())
            try transaction.putCatalog(app: "app", sequence: sequence, payload: Data("c".utf8))
            try transaction.openEpoch(id: 5, atLeast: 0, now: 2, voidsOlder: false, kept: 10)
            for client in ["a", "b"] {
                try transaction.putRegistration(
                    app: "app", client: client, payload: Data(client.utf8),
                    attributes: ["team": [client]], updatedAt: 3)
            }
            try transaction.putPushClients([
                PushClientRow(
                    key: RegistrationKey(app: "app", client: "a"), payload: Data([1]))
            ])
            try transaction.setMeta("key", Data([2]))
        }
        _ = try await node.store.write(cost: 1) { transaction in
            try transaction.deleteRegistration(app: "app", client: "b")
            try transaction.touch([(key: RegistrationKey(app: "app", client: "a"), at: Int64(50))])
        }
        _ = try await node.store.write(cost: 1) { transaction in
            try transaction.putRegistration(
                app: "app", client: "a", payload: Data("later".utf8), attributes: [:],
                updatedAt: 70, isSeen: false)
            for id in UInt64(6)...7 {
                try transaction.replaceVoidPositions(with: [])
                try transaction.openEpoch(id: id, atLeast: 0, now: 3, voidsOlder: true, kept: 10)
            }
        }
    }

    @Test func replicasAndNewNodesAreEqualToTheLeader() async throws {
        let (cluster, leader) = try await TestCluster.led()
        let replica = try await TestNode("b", of: cluster)
        try await fill(leader)
        try await replica.node.barrier()
        #expect(try replica.dump() == leader.dump())
        #expect(!replica.node.isLeading)
        await #expect(throws: StoreError.notLeading) { try await replica.append() }
        // Retention, and a node that begins behind it.
        for number in 0..<10 { try await leader.append("\(number)") }
        _ = try await leader.store.write(cost: 1) {
            try $0.prune(acceptedBefore: .min, keepRows: 5, limit: 100)
        }
        let new = try await TestNode("c", of: cluster)
        try await new.node.barrier()
        #expect(try new.dump() == leader.dump())
        #expect(new.store.floor == leader.store.floor)
        #expect(new.store.floor > 0)
        // It goes on from there.
        try await leader.append("last")
        for node in [replica, new] {
            try await node.node.barrier()
            #expect(node.store.head == leader.store.head)
        }
        for node in [leader, replica, new] { try await node.stop() }
    }

    @Test func anotherNodeLeadsOnceTheLeaderStops() async throws {
        let (cluster, first) = try await TestCluster.led()
        let second = try await TestNode("b", of: cluster)
        try await first.append("one")
        try await first.stop()
        try await second.untilLeading()
        try await second.append("two")
        // A node that was away repeats what it missed, and what it has it keeps.
        let back = try await TestNode("a", of: cluster, in: first.directory)
        #expect(back.store.head >= 1)
        try await back.node.barrier()
        #expect(try back.dump() == second.dump())
        for node in [second, back] { try await node.stop() }
    }

    @Test func `a node that resigns follows another one`() async throws {
        let (cluster, first) = try await TestCluster.led()
        let second = try await TestNode("b", of: cluster)
        first.node.resign()
        try await second.untilLeading()
        try await second.append("two")
        try await first.node.barrier()
        #expect(first.store.head == second.store.head)
        #expect(!first.node.isLeading)
        for node in [first, second] { try await node.stop() }
    }

    @Test func `a node that cannot lead leaves it to another one`() async throws {
        let cluster = try TestCluster()
        let first = try await TestNode("a", of: cluster, canLead: false)
        try await eventually("it has tried") {
            try !cluster.rows("SELECT 1 FROM timeline.leader WHERE generation > 0").isEmpty
        }
        let second = try await TestNode("b", of: cluster)
        try await second.untilLeading()
        try await second.append("one")
        try await first.node.barrier()
        #expect(first.store.head == 1)
        for node in [first, second] { try await node.stop() }
    }

    @Test(arguments: [true, false])
    func `a node that lacks what is no longer kept begins anew`(_ isOfLog: Bool) async throws {
        let (cluster, leader) = try await TestCluster.led()
        func set(_ value: UInt8) async throws {
            _ = try await leader.store.write(cost: 1) { try $0.setMeta("key", Data([value])) }
        }
        try await leader.append("first")
        if !isOfLog { try await set(0) }
        let away = try await TestNode("b", of: cluster)
        try await away.node.barrier()
        try await away.stop()
        try await set(1)
        try await leader.append("second")
        try cluster.execute("DELETE FROM timeline.batch WHERE NOT logged")
        let back = try await TestNode("b", of: cluster, in: away.directory)
        try await back.node.barrier()
        #expect(try back.dump() == leader.dump())
        // Nor does one go on that is there when it happens.
        let next = back.node.position.next().next()
        try cluster.execute(
            "INSERT INTO timeline.batch VALUES (\(next.number), gen_random_uuid(), 2, '')")
        guard case .mustBeginAnew? = try await back.end() as? ClusterNode.Fault else {
            Issue.record("it goes on behind a gap")
            return
        }
        #expect(try cluster.rows("SELECT 1 FROM timeline.cluster WHERE lost IS NULL").count == 1)
        try await leader.stop()
    }

    @Test func `a new node reads what was moved`() async throws {
        let cluster = try TestCluster()
        let directory = try GatewayProcess.temporaryDirectory()
        let alone = try SQLiteStore(directory: directory)
        _ = try await alone.write(cost: 1) { transaction in
            for (time, isSeen) in [(Int64(50), true), (70, false)] {
                try transaction.putRegistration(
                    app: "app", client: "a", payload: Data(), attributes: [:], updatedAt: time,
                    isSeen: isSeen)
            }
            try transaction.openEpoch(id: 1, atLeast: 0, now: 1, voidsOlder: true, kept: 10)
            try transaction.replaceVoidPositions(with: [])
        }
        try await alone.close()
        let administration = try ClusterAdministration(
            cluster.server.administration(database: cluster.database))
        _ = try await administration.move(
            from: directory, cluster.seal, attributes: { _ in [:] }, report: { _ in })
        let moved = try await TestNode("a", of: cluster, in: directory)
        let new = try await TestNode("b", of: cluster)
        try await new.node.barrier()
        #expect(try new.dump() == moved.dump())
        for node in [moved, new] { try await node.stop() }
    }

    @Test func `a removed app is gone for a new node before its rows are`() async throws {
        let (cluster, leader) = try await TestCluster.led()
        try await fill(leader)
        try cluster.execute(
            """
            INSERT INTO timeline.item
            SELECT 1, 'app', 'x' || n, 'not to be read', 1 FROM generate_series(1, 6000) n
            """)
        _ = try await leader.store.write(cost: 1) { transaction in
            _ = try transaction.deleteApp("app")
            try transaction.putRegistration(
                app: "app", client: "new", payload: Data(), attributes: [:], updatedAt: 80)
        }
        func left() throws -> Int {
            try cluster.rows("SELECT 1 FROM timeline.item WHERE app = 'app'").count
        }
        #expect(try left() > 1_000)
        let new = try await TestNode("b", of: cluster)
        try await new.node.barrier()
        #expect(try new.dump() == leader.dump())
        try await leader.append()
        #expect(try left() == 1)
        #expect(try cluster.rows("SELECT 1 FROM timeline.gone").isEmpty)
        for node in [leader, new] { try await node.stop() }
    }

    @Test func aLeaderThatHearsOfALossVoidsAllCursors() async throws {
        let (cluster, leader) = try await TestCluster.led()
        try cluster.execute("UPDATE timeline.cluster SET lost = 1")
        try await eventually("it leads anew") { leader.led == [false, true] }
        try await leader.untilLeading()
        // It leads before it has written that down.
        try await eventually("the loss is forgotten") {
            try cluster.rows("SELECT 1 FROM timeline.cluster WHERE lost IS NULL").count == 1
        }
        try await leader.stop()
    }

    @Test func aNodeWhoseNameAnotherProcessTakesEnds() async throws {
        let (cluster, first) = try await TestCluster.led()
        try cluster.execute(
            "UPDATE timeline.node SET start = '00000000-0000-4000-8000-000000000000'")
        #expect(try await first.end() as? ClusterNode.Fault == .nameTaken)
        // It ended without the name.
        #expect(
            try cluster.rows("SELECT 1 FROM timeline.node WHERE start::text LIKE '00000000%'").count
                == 1)
        let second = try await TestNode("a", of: cluster)
        try await second.untilLeading()
        try await second.stop()
    }

    @Test func whatIsNotOfTheLogIsKeptForNodesThatAreNotFarBehind() throws {
        let cluster = try TestCluster()
        try cluster.execute(
            """
            INSERT INTO timeline.batch
            SELECT n, gen_random_uuid(), 0, '', n % 100 = 0
            FROM generate_series(1, 101000) n WHERE n <= 2000 OR n = 101000
            """)
        try cluster.execute(
            """
            DO $$ DECLARE newest_id uuid := (SELECT id FROM timeline.batch WHERE number = 101000);
            BEGIN
              CALL timeline.append(0, 101000, newest_id, gen_random_uuid(), 0, '', true, '{}', '{}',
                '{}', '{}', '{}', 0);
            END $$
            """)
        let kept = try cluster.rows(
            """
            SELECT count(*) FILTER (WHERE logged AND number < 1000),
              count(*) FILTER (WHERE NOT logged AND number < 1000),
              count(*) FILTER (WHERE NOT logged AND number >= 1000)
            FROM timeline.batch
            """)[0]
        #expect(try kept.integer(0) == 10)
        #expect(try kept.integer(1) == 0)
        #expect(try kept.integer(2) == 990)
    }

    @Test func anAppendOfAnOlderGenerationOrBehindAnotherBatchIsRefused() async throws {
        let (cluster, leader) = try await TestCluster.led()
        try await leader.append()
        let connection = try ClusterConnection(cluster.address.servers)
        let position = leader.node.position
        let generation = try cluster.rows("SELECT generation FROM timeline.leader")[0].integer(0)
        func append(_ generation: Int64, from previous: ClusterPosition) throws {
            _ = try ClusterDatabase.append(
                [.setMeta("late", Data())], head: 2, from: previous, to: previous.next(),
                generation: generation, connection, cluster.seal)
        }
        #expect(throws: PostgresError.fenced) { try append(generation - 1, from: position) }
        #expect(throws: PostgresError.fenced) {
            try append(
                generation,
                from: ClusterPosition(log: position.log, number: position.number, id: 1))
        }
        #expect(throws: PostgresError.fenced) {
            try append(
                generation,
                from: ClusterPosition(
                    log: position.log, number: position.number - 1, id: position.id))
        }
        #expect(try cluster.rows("SELECT 1 FROM timeline.batch").count == 2)
        // Nor is a lease taken that looked free before it was renewed.
        #expect(try ClusterDatabase.take("b", from: generation, connection) == nil)
        try await leader.stop()
        #expect(try ClusterDatabase.take("b", from: generation, connection) == generation + 1)
    }

    @Test(arguments: ServerProxy.Direction.allCases)
    func aWriteWhoseOutcomeIsUnknownIsRepeatedOrNot(_ direction: ServerProxy.Direction) async throws
    {
        let cluster = try TestCluster()
        let proxy = try ServerProxy(to: cluster.server)
        let leader = try await TestNode(
            "a", of: cluster,
            at: try PostgresAddress(
                "host=\(proxy.directory) port=\(cluster.server.port) user=postgres"
                    + " dbname=\(cluster.database)"))
        try await leader.untilLeading()
        var confirmed: [String] = []
        for number in 0..<40 {
            let id = "\(number)"
            if number % 4 == 3 { proxy.cut(after: 20 + 37 * number, direction) }
            do {
                try await leader.append(id)
                confirmed.append(id)
            } catch let error as StoreError {
                let isExpected =
                    switch error {
                    case .notLeading, .unconfirmed: true
                    default: false
                    }
                #expect(isExpected, "\(error)")
                try await leader.untilLeading()
            }
        }
        #expect(leader.led.count > 1)
        // The store has what it confirmed, and is what a new node reads.
        let new = try await TestNode("b", of: cluster)
        try await new.node.barrier()
        #expect(try new.dump() == leader.dump())
        let log = try new.dump()["log"] ?? []
        for id in confirmed {
            #expect(log.contains { $0.contains("event_id:\"\(id)\"") }, "\(id) \(log.first ?? "")")
        }
        for node in [leader, new] { try await node.stop() }
    }

    @Test func aStoreWithMoreThanTheDatabaseBeginsAnewAndEveryCursorIsVoid() async throws {
        let (cluster, leader) = try await TestCluster.led()
        try await leader.append("kept")
        let replica = try await TestNode("b", of: cluster)
        try await replica.node.barrier()
        try await leader.append("lost")
        try await replica.node.barrier()
        // As an older backup has it.
        try cluster.execute(
            "DELETE FROM timeline.batch WHERE number = (SELECT max(number) FROM timeline.batch)")
        let end = try await replica.end()
        guard case .mustBeginAnew? = end as? ClusterNode.Fault else {
            Issue.record("\(String(describing: end))")
            return
        }
        // The leader appends behind what is lost, and is refused.
        await #expect(throws: StoreError.self) { try await leader.append("late") }
        #expect(try await leader.end() is ClusterNode.Fault)
        let back = try await TestNode("b", of: cluster, in: replica.directory)
        try await back.untilLeading()
        #expect(back.led == [true])
        #expect(back.store.head == 1)
        try await eventually("the loss is forgotten") {
            try cluster.rows("SELECT 1 FROM timeline.cluster WHERE lost IS NULL").count == 1
        }
        try await back.stop()
    }

    @Test func aDirectoryOfAnotherLogIsRefused() async throws {
        let cluster = try TestCluster()
        let directory = try GatewayProcess.temporaryDirectory()
        let alone = try SQLiteStore(directory: directory)
        _ = try await alone.write(cost: 1) {
            try $0.append(
                app: "app", type: .change, source: nil, eventID: nil, acceptedAt: 0,
                payload: Data())
        }
        try await alone.close()
        await #expect(throws: ClusterNode.Fault.hasOwnLog) {
            try await TestNode("a", of: cluster, in: directory)
        }
        let node = try await TestNode("a", of: cluster)
        try await node.stop()
        await #expect(throws: ClusterNode.Fault.otherCluster) {
            try await TestNode("a", of: try TestCluster(), in: node.directory)
        }
    }

    @Test func withoutAnAnswerABarrierEndsAndTheLeaderStopsToWrite() async throws {
        let cluster = try TestCluster(hasServer: true)
        let leader = try await TestNode("a", of: cluster)
        try await leader.untilLeading()
        let replica = try await TestNode("b", of: cluster)
        try await replica.node.barrier()
        cluster.server.pause()
        await #expect(throws: ClusterNode.Fault.noAnswer) { try await replica.node.barrier() }
        await #expect(throws: StoreError.self) { try await leader.append() }
        #expect(!leader.node.isLeading)
        try await eventually("it says so") { replica.node.objection != nil }
        cluster.server.resume()
        try await eventually("one leads") { leader.node.isLeading || replica.node.isLeading }
        try await replica.node.barrier()
        for node in [leader, replica] { try await node.stop() }
    }

    @Test func `a call that waits for a lock ends with its connection`() async throws {
        let cluster = try TestCluster()
        let holder = try cluster.server.administration(database: cluster.database)
        try holder.execute("BEGIN")
        try holder.execute("UPDATE timeline.leader SET until = until")
        func waiting() throws -> Int {
            try cluster.rows(
                """
                SELECT 1 FROM pg_stat_activity
                WHERE datname = current_database() AND wait_event_type = 'Lock'
                """
            ).count
        }
        var connection: ClusterConnection? = try ClusterConnection(cluster.address.servers)
        #expect(throws: PostgresError.deadline) {
            try connection?.rows("UPDATE timeline.leader SET until = until", within: 100)
        }
        try await eventually("the call waits") { try waiting() == 1 }
        withExtendedLifetime(connection) {}
        connection = nil
        try await eventually("it waits no more") { try waiting() == 0 }
        try holder.execute("COMMIT")
    }

    /// Gives the server a standby that commits wait for; returns it, and a leader that has appended.
    private func withStandby(
        _ cluster: TestCluster
    ) async throws -> (standby: PostgresServer, leader: TestNode) {
        let standby = try PostgresServer(standbyOf: cluster.server, name: "standby")
        try cluster.server.set("synchronous_standby_names", "ANY 1 (standby)")
        try await eventually("commits wait for the standby") {
            try cluster.rows("SELECT sync_state FROM pg_stat_replication").first?.text(0)
                == "quorum"
        }
        let leader = try await TestNode("a", of: cluster, waitsForStandby: true)
        try await leader.untilLeading()
        try await leader.append("both")
        return (standby, leader)
    }

    @Test func withoutItsQuorumNothingIsConfirmed() async throws {
        let cluster = try TestCluster(hasServer: true)
        let (standby, leader) = try await withStandby(cluster)
        // Emptied, as managers of high availability do: commits succeed without a standby.
        try cluster.server.set("synchronous_standby_names", "")
        try await eventually("the leader stops to write") { !leader.node.isLeading }
        await #expect(throws: StoreError.notLeading) { try await leader.append("one") }
        try cluster.server.set("synchronous_standby_names", "ANY 1 (standby)")
        try await leader.untilLeading()
        try await leader.append("both again")
        #expect(standby.isRunning)
        try await leader.stop()
    }

    @Test func `a barrier waits for what is not of the log, too`() async throws {
        let (cluster, leader) = try await TestCluster.led()
        let replica = try await TestNode("b", of: cluster)
        for number in UInt8(0)..<100 {
            _ = try await leader.store.write(cost: 1) { try $0.setMeta("key", Data([number])) }
            try await replica.node.barrier()
            #expect(try replica.store.meta("key") == Data([number]))
        }
        for node in [leader, replica] { try await node.stop() }
    }

    @Test func `a batch of the same number and another id is of another history`() async throws {
        let (cluster, leader) = try await TestCluster.led()
        try await leader.append("kept")
        let replica = try await TestNode("b", of: cluster)
        try await replica.node.barrier()
        let exchange = "UPDATE timeline.batch SET id = gen_random_uuid() WHERE number = 1"
        try cluster.execute(exchange)
        // Nobody forgets it: the leader has the same, and ends as well.
        try await eventually("the loss is recorded") {
            try !cluster.rows("SELECT 1 FROM timeline.cluster WHERE lost IS NOT NULL").isEmpty
        }
        for node in [replica, leader] { #expect(try await node.end() is ClusterNode.Fault) }
        let back = try await TestNode("b", of: cluster, in: replica.directory)
        try await back.untilLeading()
        #expect(back.led == [true])
        try await back.stop()
        // Nor does a start go on with it.
        try cluster.execute(exchange)
        let again = try await TestNode("b", of: cluster, in: replica.directory)
        try await again.untilLeading()
        #expect(again.led == [true])
        try await again.stop()
    }

    @Test func `a server that came back without its standby is not believed`() async throws {
        let cluster = try TestCluster(hasServer: true)
        let (standby, leader) = try await withStandby(cluster)
        let replica = try await TestNode("b", of: cluster, waitsForStandby: true)
        try await replica.node.barrier()
        standby.pause()
        try cluster.server.crash()
        try cluster.server.start()
        // What a commit left that still waited for the standby.
        let position = replica.node.position.next()
        let connection = try cluster.server.administration(database: cluster.database)
        try connection.execute("SET synchronous_commit = local")
        try connection.rows(
            "INSERT INTO timeline.batch VALUES ($1, $2, $3, $4)",
            [
                .integer(position.number), .uuid(position.id), .integer(1),
                .bytes(try cluster.seal.seal([], for: ClusterDatabase.place(of: position))),
            ])
        await #expect(throws: ClusterNode.Fault.noAnswer) { try await replica.node.barrier() }
        #expect(replica.node.position.number == 1)
        await #expect(throws: PostgresError.self) {
            try await TestNode("c", of: cluster, waitsForStandby: true)
        }
        standby.resume()
        try await eventually("it is on the standby") {
            (try? await replica.node.barrier()) != nil
        }
        #expect(replica.node.position == position)
        for node in [leader, replica] { try await node.stop() }
    }
}
