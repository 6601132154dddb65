import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// `timelinectl canary --audit` against a real gateway, which stands for two nodes by two URLs.
@Suite(.alone) struct AuditTests {
    /// Runs one round, whose changes the auditor waits for; returns its report.
    private static func round(
        _ gateway: LocalGateway, _ more: [String]
    ) throws -> (exit: GatewayProcessExit, report: JSONObject, nodes: [JSONObject]) {
        let token = try gateway.token(
            app: GameFixture.app, scope: "catalog:write changes:write client",
            sub: "timeline-canary")
        let (exit, output) = try GatewayProcess.timelinectl(
            [
                "canary", "--audit", "--for", "0.1", "--interval", "60", "--json", "--ca",
                gateway.ca, "--token", token, "--app", GameFixture.app,
            ] + more)
        let line = output.split(separator: "\n").first ?? ""
        let report = try #require(try JSONValue(parsing: Array(line.utf8)).objectValue, "\(output)")
        return (exit, report, (report["nodes"]?.arrayValue ?? []).compactMap(\.objectValue))
    }

    @Test func `a change is followed at every node, and counted for Prometheus`() throws {
        let gateway = try LocalGateway()
        let game = try GameFixture(gateway)
        let port = try #require(URL(string: gateway.url)?.port)
        // The same gateway by its other name stands for a second node.
        let other = gateway.url.contains("localhost") ? "127.0.0.1" : "localhost"
        let urls = [gateway.url, "https://\(other):\(port)"]
        let file = gateway.data + "/audit.prom"
        // However late the change is.
        let (exit, report, nodes) = try Self.round(
            gateway,
            ["--objective", "0", "--textfile", file] + urls.flatMap { ["--node", $0] })
        #expect(exit == .status(0), "\(report)")
        #expect(report["changes"] == 1)
        #expect(nodes.map { $0["node"]?.stringValue } == urls)
        let clients = try gateway.http().request(
            "GET", "/v1/apps/\(GameFixture.app)/clients", token: game.backend)
        #expect(clients["clients"]?.arrayValue?.count == 0, "the auditor stayed")
        let page = MetricsPage(try String(contentsOfFile: file, encoding: .utf8))
        let app = "app=\"\(GameFixture.app)\""
        #expect(page["timeline_audit_reliability_ratio{\(app)}"] != nil)
        for url in urls {
            #expect(page["timeline_audit_connected{\(app),node=\"\(url)\"}"] != nil)
        }
        let check = try GatewayProcess.run(
            ["bash", "-c", "promtool check metrics <\"$0\"", file], program: "/usr/bin/env")
        #expect(check.exit == .status(0), "\(check.output)")
    }

    @Test func `a gateway that is gone is no objective met`() throws {
        let gateway = try LocalGateway()
        _ = try GameFixture(gateway)
        gateway.terminate()
        let (exit, _, nodes) = try Self.round(gateway, ["--url", gateway.url])
        #expect(exit == .status(1))
        #expect(nodes.first?["connected"] == false && nodes.first?["reason"] != nil)
    }

    @Test(arguments: [
        ["--once"], ["--patience", "3"], ["--interval", "61"], ["--objective", "1.5"],
        ["--for", "0"], ["--node", "http://localhost"],
        ["--node", "https://localhost", "--node", "https://localhost"],
    ]) func `a wrong command line`(arguments: [String]) throws {
        let (exit, output) = try GatewayProcess.timelinectl(
            ["canary", "--audit", "--app", GameFixture.app, "--url", "https://localhost"]
                + arguments)
        #expect(exit == .status(2), "\(output)")
    }
}
