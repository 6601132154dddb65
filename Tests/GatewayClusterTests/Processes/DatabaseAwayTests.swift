import ClusterTestSupport
import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// A gateway whose database is away for a while.
@Suite(.enabled(if: PostgresServer.isInstalled)) struct DatabaseAwayTests {
    private static let client = "/v1/apps/\(ClusterGateways.app)/clients/phone"

    /// Requires a refusal that says when to retry.
    private func expectRefusal(
        _ answer: TestHTTPAnswer, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(answer.status == 503, "\(answer.text)", sourceLocation: sourceLocation)
        let seconds = answer.header("retry-after").flatMap { Int($0) } ?? 0
        #expect((1...5).contains(seconds), sourceLocation: sourceLocation)
        #expect(
            answer["detail"]?.stringValue?.contains("cluster") == true,
            "\(answer.text)", sourceLocation: sourceLocation)
    }

    @Test func `writes and polls are refused, streams and known answers stay`() throws {
        let cluster = try ClusterFixture(hasServer: true)
        let gateways = try ClusterGateways(cluster)
        let node = try gateways.start(1)
        let http = gateways.http(node)
        let (backend, phone) = (try gateways.backend(), try gateways.token("phone"))
        #expect(try gateways.putCatalog(node) == 201)
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

        try cluster.primary.start()
        let posted = try gateways.change("panda", id: "3", at: node)
        #expect(posted.status == 202, "\(posted.text)")
        // Whether the refused change is in the log is not known; each stream is told at least once.
        #expect(try stream.next() == ["panda"])
        #expect(try second.next() == ["panda"])
        #expect(try gateways.poll("phone", since: told, at: node).stale == ["panda"])
        #expect(try gateways.poll("other", since: nil, at: node).stale == ["all"])
    }
}

/// A cluster whose database lost the end of its log, as after a restore from a backup.
@Suite(.enabled(if: PostgresServer.isInstalled)) struct RestoredDatabaseTests {
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
        #expect(try gateways.putCatalog(node) == 201)
        _ = try gateways.register("phone", ["panda"], at: node)
        #expect(try gateways.change("panda", id: "1", at: node).status == 202)
        let kept = try gateways.poll("phone", since: nil, at: node).cursor
        cluster.primary.kill()
        try copy(live, backup)
        try cluster.primary.start()

        #expect(try gateways.change("panda", id: "2", at: node).status == 202)
        let lost = try gateways.poll("phone", since: kept, at: node)
        #expect(lost.stale == ["panda"])
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
    }
}
