import ClusterTestSupport
import Foundation
import GatewayCluster
import GatewayTestSupport
import Testing
import WidgetModel

/// Nodes whose leader is away for a while.
@Suite(.enabled(if: PostgresServer.isInstalled), .repeatedAfterStalls)
struct LeaderAwayTests {
    private static let app = "/v1/apps/\(ClusterGateways.app)"
    private static let clients = app + "/clients"

    @Test func `until another leads writes are refused, and clients of a replica go on`() throws {
        let cluster = try ClusterFixture(nodes: 3)
        let gateways = try ClusterGateways(cluster)
        let leader = try gateways.start(1)
        try gateways.putCatalog(leader)
        let replica = try gateways.makeNode(2, admin: GatewayProcess.freeAddress())
        let cursors = try [("phone", "panda"), ("pad", "hero")].map { client, character in
            try gateways.register(client, [character], at: leader)["cursor"]?.stringValue
        }
        let stream = try gateways.stream("phone", from: cursors[0], at: replica)
        #expect(try gateways.change("panda", id: "1", at: leader).status == 202)
        #expect(try stream.next() == ["panda"])
        let told = try #require(stream.cursor)

        leader.kill()
        // Nobody takes the lead before the test says so, however slow it is.
        try cluster.execute(
            "UPDATE timeline.leader SET until = clock_timestamp() + interval '29 s'")
        for (method, path) in [
            ("GET", Self.clients), ("GET", Self.clients + "/phone"), ("GET", Self.app + "/changes"),
            ("DELETE", Self.clients + "/phone"),
        ] {
            expectRefusal(
                try gateways.http(replica).request(method, path, token: gateways.backend()))
        }
        expectRefusal(try gateways.change("panda", id: "2", once: true, at: replica))
        expectRefusal(try gateways.register("phone", ["hero"], once: true, at: replica))
        #expect(try gateways.poll("pad", since: cursors[1], at: replica).stale == [])
        #expect(try gateways.acknowledge("phone", upTo: told, at: replica).status == 204)
        let pad = try gateways.stream("pad", from: cursors[1], at: replica)
        #expect(pad.status == 200)
        // Nor does a start need a leader.
        let next = try gateways.start(3)
        #expect(replica.status(of: "/readyz") == 200)

        // Another one leads, and learns what the replica heard.
        replica.signal(SIGSTOP)
        try cluster.execute("UPDATE timeline.leader SET until = 'epoch'")
        #expect(try gateways.change("hero", id: "3", at: next).status == 202)
        replica.signal(SIGCONT)
        #expect(try pad.next() == ["hero"])
        try blockUntil("it knows what the phone has confirmed") {
            try gateways.http(next).request(
                "GET", Self.clients + "/phone", token: gateways.backend())["stale"] == 0
        }
        // The stream that was open before is open still.
        #expect(try gateways.change("panda", id: "4", at: replica).status == 202)
        #expect(try stream.next() == ["panda"])
    }

    @Test func `a first start waits for the keys of the node that leads`() throws {
        let cluster = try ClusterFixture(nodes: 2)
        let gateways = try ClusterGateways(cluster)
        // Another node is about to lead.
        try cluster.execute(
            "UPDATE timeline.leader SET until = clock_timestamp() + interval '29 s'")
        let node = try gateways.makeNode(1, startsNow: false)
        let starting = Thread { try? node.start() }
        starting.start()
        // A node that does not wait is ready long before it has renewed its row: every 2 s.
        try cluster.wait(for: 1, "SELECT count(*) FROM timeline.node WHERE position >= 0")
        try cluster.execute(
            "UPDATE timeline.leader SET until = clock_timestamp() + interval '29 s'")
        let seen = "SELECT (extract(epoch FROM max(seen)) * 1000)::bigint FROM timeline.node"
        let first = try #require(cluster.administration().rows(seen).first).integer(0)
        try cluster.wait(
            for: 1,
            "SELECT count(*) FROM timeline.node WHERE extract(epoch FROM seen) * 1000 > \(first + 3_000)"
        )
        #expect(!starting.isFinished)
        try cluster.execute("UPDATE timeline.leader SET until = 'epoch'")
        let leader = try gateways.start(2)
        try blockUntil("the node is ready") { starting.isFinished }
        // A token of either is a token of both.
        #expect(try keys(of: leader) == keys(of: node))
    }

    private func keys(of node: GatewayProcess) throws -> String {
        try String(contentsOfFile: node.data + "/keys/ring.json", encoding: .utf8)
    }

    @Test func `what was passed on to a paused leader is refused, and not done late`() async throws
    {
        let gateways = try ClusterGateways(ClusterFixture())
        let leader = try gateways.start(1)
        try gateways.putCatalog(leader)
        let replica = try gateways.makeNode(2, admin: GatewayProcess.freeAddress())
        // The connection between them is open.
        #expect(try gateways.register("phone", ["panda"], at: replica).status == 201)
        let backend = try gateways.backend()
        leader.signal(SIGSTOP)
        async let read = gateways.http(replica).send("GET", Self.clients, token: backend)
        async let write = gateways.http(replica).send(
            "DELETE", Self.clients + "/phone", token: backend)
        for answer in try await [read, write] { expectRefusal(answer) }
        #expect(replica.status(of: "/readyz") == 200)
        #expect(try gateways.change("panda", id: "1", at: replica).status == 202)

        leader.signal(SIGCONT)
        // It asks the one that leads now.
        #expect(try gateways.change("panda", id: "2", at: leader).status == 202)
        #expect(try gateways.poll("phone", since: nil, at: leader).stale == ["all"])
    }

    @Test func `what was passed on to a former leader is not passed on again`() throws {
        let cluster = try ClusterFixture(nodes: 3)
        let gateways = try ClusterGateways(cluster)
        let proxy = try ServerProxy(to: cluster.primary)
        let leader = try gateways.start(1)
        try gateways.putCatalog(leader)
        let next = try gateways.start(2)
        let name = try cluster.administration().rows(
            """
            SELECT name FROM timeline.node
            WHERE name <> (SELECT node FROM timeline.leader)
            """)
        let cutOff = try gateways.makeNode(3, hosts: [proxy.directory])
        #expect(try gateways.change("panda", id: "1", at: cutOff).status == 202)

        // It goes on believing in the leader that it saw.
        proxy.silence()
        let generation = "SELECT generation FROM timeline.leader"
        let old = try cluster.administration().rows(generation)[0].integer(0)
        try cluster.execute("UPDATE timeline.leader SET node = '\(name[0].text(0))'")
        try blockUntil("the other one leads, and the former leader knows it") {
            try cluster.administration().rows(generation)[0].integer(0) > old
                && gateways.change("panda", id: "2", once: true, at: next).status == 202
                && gateways.change("panda", id: "3", once: true, at: leader).status == 202
        }
        let before = try cluster.administration().rows("SELECT max(head) FROM timeline.batch")
        expectRefusal(try gateways.change("panda", id: "4", once: true, at: cutOff))
        let after = try cluster.administration().rows("SELECT max(head) FROM timeline.batch")
        #expect(try after[0].integer(0) == before[0].integer(0))
        proxy.resume()
    }
}
