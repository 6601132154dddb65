import ClusterTestSupport
import Foundation
import GatewayCluster
import GatewayTestSupport
import Testing
import WidgetModel

/// Expects a refusal that says when to retry.
func expectRefusal(
    _ answer: TestHTTPAnswer, sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(answer.status == 503, "\(answer.text)", sourceLocation: sourceLocation)
    let seconds = answer.header("retry-after").flatMap { Int($0) } ?? 0
    #expect((1...5).contains(seconds), sourceLocation: sourceLocation)
    #expect(
        answer["detail"]?.stringValue?.contains("cluster") == true,
        "\(answer.text)", sourceLocation: sourceLocation)
}

/// A gateway whose database is away for a while.
@Suite(.enabled(if: PostgresServer.isInstalled), .repeatedAfterStalls)
struct DatabaseAwayTests {
    private static let clients = "/v1/apps/\(ClusterGateways.app)/clients"
    private static let client = clients + "/phone"

    @Test func `writes and polls are refused, streams and known answers stay`() throws {
        let cluster = try ClusterFixture(hasServer: true)
        let gateways = try ClusterGateways(cluster)
        let node = try gateways.makeNode(1, admin: GatewayProcess.freeAddress())
        let http = gateways.http(node)
        let (backend, phone) = (try gateways.backend(), try gateways.token("phone"))
        try gateways.putCatalog(node)
        let registered = try gateways.register("phone", ["panda"], at: node)
        let cursor = try #require(registered["cursor"]?.stringValue)
        _ = try gateways.register("other", ["panda"], at: node)
        let stream = try gateways.stream("phone", from: cursor, at: node)
        #expect(try gateways.change("panda", id: "1", at: node).status == 202)
        #expect(try stream.next() == ["panda"])
        let told = try #require(stream.cursor)

        cluster.primary.kill()
        expectRefusal(try gateways.change("panda", id: "2", once: true, at: node))
        expectRefusal(try gateways.register("phone", ["hero"], once: true, at: node))
        expectRefusal(
            try http.request("DELETE", Self.client, token: backend))
        expectRefusal(
            try http.request(
                "GET", Self.client + "/reloads", token: phone, headers: [("Last-Event-ID", told)]))
        expectRefusal(
            try http.request(
                "PUT", "/v1/apps/\(ClusterGateways.app)/catalog", token: backend,
                headers: [("Content-Type", "application/yaml")],
                body: "app: \(ClusterGateways.app)\nwidgets: []"))
        // Known here: what does not depend on the database is answered.
        #expect(
            try http.request(
                "POST", Self.client + "/acks", token: phone,
                body: #"{"cursor": "\#(told)", "rebuilt": []}"#
            ).status == 204)
        #expect(try http.request("GET", "/.well-known/jwks.json").status == 200)
        let second = try gateways.stream("phone", from: told, at: node)
        #expect(second.status == 200)
        #expect(node.status(of: "/livez") == 200)
        #expect(try node.adminHTTP().request("GET", "/metrics").status == 200)
        // A start waits, and says so. A stop ends it in order.
        let late = try gateways.makeNode(2, startsNow: false)
        for isStopped in [true, false] {
            try late.launch()
            try blockUntil("the start waits", details: { late.standardErrorTail }) {
                late.standardErrorTail.contains("the start waits for it")
            }
            if isStopped { #expect(late.terminate() == .status(0)) }
        }
        // The balancer takes it out when this lasts.
        try blockUntil("it is not ready") { node.status(of: "/readyz") == 503 }

        try cluster.primary.start()
        #expect(late.waitUntilReady(), "\(late.standardErrorTail)")
        try blockUntil("it is ready again") { node.status(of: "/readyz") == 200 }
        let posted = try gateways.change("panda", id: "3", at: node)
        #expect(posted.status == 202, "\(posted.text)")
        // Whether the refused change is in the log is not known; each stream is told at least once.
        #expect(try stream.next() == ["panda"])
        #expect(try second.next() == ["panda"])
        #expect(try gateways.poll("phone", since: told, at: node).stale == ["panda"])
        #expect(try gateways.poll("other", since: nil, at: node).stale == ["all"])
    }

    @Test func `a node that is cut off says nothing false, and keeps what clients confirm`()
        async throws
    {
        let cluster = try ClusterFixture()
        let proxy = try ServerProxy(to: cluster.primary)
        let gateways = try ClusterGateways(cluster)
        let leader = try gateways.start(1)
        try gateways.putCatalog(leader)
        let node = try gateways.makeNode(2, hosts: [proxy.directory])
        let registered = try gateways.register("phone", ["panda"], at: leader)
        let cursor = try #require(registered["cursor"]?.stringValue)
        let stream = try gateways.stream("phone", from: cursor, at: node)
        #expect(try gateways.change("panda", id: "1", at: leader).status == 202)
        #expect(try stream.next() == ["panda"])
        let told = try #require(stream.cursor)

        proxy.silence()
        // What the node has not heard of is not known to be absent.
        let late = try gateways.register("late", ["hero"], at: leader)
        let body = try JSONValue.object(["cursor": #require(late["cursor"])]).text
        let (lateToken, phoneToken) = (try gateways.token("late"), try gateways.token("phone"))
        let opened = try gateways.stream("late", from: nil, once: true, at: node)
        async let polled = gateways.http(node).send(
            "GET", Self.clients + "/late/reloads", token: lateToken)
        async let acknowledged = gateways.http(node).send(
            "POST", Self.clients + "/late/acks", token: lateToken, body: body)
        async let known = gateways.http(node).send(
            "GET", Self.client + "/reloads?since=\(cursor)", token: phoneToken)
        for answer in try await [polled, acknowledged, known] { expectRefusal(answer) }
        #expect(opened.status == 503)
        // What it knows stays in force.
        #expect(try gateways.acknowledge("phone", upTo: told, at: node).status == 204)
        #expect(try gateways.stream("phone", from: cursor, at: node).next() == ["panda"])
        // It believes in no leader longer than in the lease that it saw.
        var posted = try gateways.change("nobody", id: "2", once: true, at: node)
        try blockUntil("changes are refused") {
            posted = try gateways.change("nobody", id: "2", once: true, at: node)
            return posted.status != 202
        }
        expectRefusal(posted)

        proxy.resume()
        try blockUntil("the leader knows what the phone has confirmed") {
            try leader.http().request("GET", Self.client, token: gateways.backend())["stale"] == 0
        }
        #expect(try gateways.poll("late", since: nil, at: node).stale == ["all"])
        #expect(try gateways.change("panda", id: "3", at: node).status == 202)
        #expect(try stream.next() == ["panda"])
    }

    @Test func `without its standby an append waits unseen, and nothing is confirmed`() throws {
        let cluster = try ClusterFixture(hasQuorum: true)
        let standby = try #require(cluster.standby)
        let gateways = try ClusterGateways(cluster)
        let node = try gateways.start(1)
        try gateways.putCatalog(node)
        let registered = try gateways.register("phone", ["panda"], at: node)
        let cursor = try #require(registered["cursor"]?.stringValue)
        let stream = try gateways.stream("phone", from: cursor, at: node)
        #expect(stream.status == 200)
        func newest() throws -> Int64? {
            try cluster.administration().rows("SELECT max(number) FROM timeline.batch").first?
                .integer(0)
        }

        standby.pause()
        let before = try newest()
        expectRefusal(try gateways.change("panda", id: "1", once: true, at: node))
        // As long as its lease may hold it answers what it knows.
        try blockUntil("polls are refused") {
            try gateways.http(node).request(
                "GET", Self.client + "/reloads", token: gateways.token("phone")
            ).status == 503
        }
        #expect(try newest() == before)
        #expect(try gateways.acknowledge("phone", upTo: cursor, at: node).status == 204)

        standby.resume()
        // Done or not, it counts once.
        #expect(try gateways.change("panda", id: "1", at: node).status == 202)
        #expect(try stream.next() == ["panda"])
        #expect(try gateways.poll("phone", since: cursor, at: node).stale == ["panda"])
    }
}

/// A cluster whose database lost the end of its log, as after a restore from a backup.
@Suite(.enabled(if: PostgresServer.isInstalled), .repeatedAfterStalls)
struct RestoredDatabaseTests {
    private func copy(_ from: String, _ to: String) throws {
        let (exit, output) = try GatewayProcess.run(
            ["-c", "rm -rf '\(to)' && cp -a '\(from)' '\(to)'"], program: "/bin/sh")
        guard exit == .status(0) else { throw TestFailure(output) }
    }

    @Test(arguments: [true, false])
    func `all cursors are stale, by what a node has or by a cursor`(keepsDirectory: Bool) throws {
        let cluster = try ClusterFixture(hasServer: true)
        let (live, backup) = (
            cluster.primary.directory + "/data", cluster.primary.directory + "/backup"
        )
        let gateways = try ClusterGateways(cluster)
        let node = try gateways.start(1)
        try gateways.putCatalog(node)
        _ = try gateways.register("phone", ["panda"], at: node)
        #expect(try gateways.change("panda", id: "1", at: node).status == 202)
        let kept = try gateways.poll("phone", since: nil, at: node).cursor
        cluster.primary.kill()
        try copy(live, backup)
        try cluster.primary.start()

        #expect(try gateways.change("panda", id: "2", at: node).status == 202)
        let lost = try gateways.poll("phone", since: kept, at: node)
        #expect(lost.stale == ["panda"])
        let other = try gateways.start(2)
        other.kill()
        if !keepsDirectory {
            node.kill()
            try FileManager.default.removeItem(atPath: node.data)
        }
        cluster.primary.kill()
        try copy(backup, live)
        try cluster.primary.start()

        if keepsDirectory {
            // The node cannot take back what it told; its service manager starts it again.
            #expect(node.waitForExit(seconds: Patience.seconds) == .status(1))
            #expect(node.standardErrorTail.contains("the database lost the end of the log"))
        }
        try node.start()
        // Another change takes the number of the one that was lost.
        #expect(try gateways.change("panda", id: "3", at: node).status == 202)
        // A client from before the loss cannot know what it was owed.
        #expect(try gateways.poll("phone", since: lost.cursor, at: node).stale == ["all"])
        try blockUntil("the older one is void, too") {
            try gateways.poll("phone", since: kept, at: node).stale == ["all"]
        }

        // Another one that had more, too, can have told nothing that is not void already.
        let connection = try cluster.administration()
        let state = {
            try connection.rows(
                "SELECT generation, coalesce(lost, -1) FROM timeline.leader, timeline.cluster"
            ).map { [try $0.integer(0), try $0.integer(1)] }
        }
        // A leader writes a moment later that it has voided what is older.
        try blockUntil("the loss is forgotten") { try state()[0][1] == -1 }
        let before = try state()
        try other.start()
        #expect(try state() == before)
    }
}
