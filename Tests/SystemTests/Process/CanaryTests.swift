import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// `timelinectl canary` against a real gateway.
@Suite(.alone) struct CanaryTests {
    private static func arguments(
        _ gateway: LocalGateway, _ more: [String], scope: String? = nil
    ) throws -> [String] {
        let token = try gateway.token(
            app: GameFixture.app, scope: scope ?? "catalog:write changes:write client",
            sub: "timeline-canary")
        return [
            "canary", "--url", gateway.url, "--ca", gateway.ca, "--token", token, "--app",
            GameFixture.app,
        ] + more
    }

    private static func run(
        _ gateway: LocalGateway, _ more: String..., scope: String? = nil
    ) throws -> (exit: GatewayProcessExit, output: String) {
        try GatewayProcess.timelinectl(arguments(gateway, more, scope: scope))
    }

    @Test func `one round follows a change that concerns nobody else`() throws {
        let gateway = try LocalGateway()
        let game = try GameFixture(gateway)
        let other = try game.client("phone", ["panda"])
        let round = try Self.run(gateway, "--once", "--patience", "3600", "--json")
        #expect(round.exit == .status(0), "\(round.output)")
        let answer = try JSONValue(parsing: Array(round.output.utf8)).objectValue
        #expect(answer?["outcome"] == "confirmed" && answer?["sequence"] == 2)
        #expect(try game.poll(other, since: other.cursor).stale == [])
        let clients = try gateway.http().request(
            "GET", "/v1/apps/\(GameFixture.app)/clients", token: game.backend)
        #expect(clients["clients"]?.arrayValue?.count == 1, "the canary stayed")
        let weak = try Self.run(gateway, "--once", scope: "changes:write")
        #expect(weak.exit == .status(1), "\(weak.output)")
        let unknown = try Self.run(gateway, "--once", "--kind", "other")
        #expect(unknown.exit == .status(2) && unknown.output.contains("no kind other"))
        gateway.terminate()
        #expect(try Self.run(gateway, "--once").exit == .status(3))
    }

    @Test func `rounds are counted, until the gateway is gone`() throws {
        let gateway = try LocalGateway()
        _ = try GameFixture(gateway)
        let file = gateway.data + "/canary.prom"
        let canary = try TestProgram(
            GatewayProcess.program(named: "timelinectl"),
            Self.arguments(
                gateway,
                ["--interval", "1", "--patience", "3600", "--textfile", file, "--json"]))
        #expect(try canary.json(line: 0)?["outcome"] == "confirmed")
        gateway.terminate()
        let prefix = "timeline_canary_rounds_total{app=\"\(GameFixture.app)\",outcome="
        var page = MetricsPage("")
        try blockUntil("failed", details: { canary.output }) {
            page = MetricsPage((try? String(contentsOfFile: file, encoding: .utf8)) ?? "")
            return page[prefix + "\"failed\"}"] ?? 0 >= 1
        }
        canary.kill()
        #expect(page[prefix + "\"confirmed\"}"] ?? 0 >= 1)
        #expect(page["timeline_canary_up{app=\"\(GameFixture.app)\"}"] == 0)
        let (exit, output) = try GatewayProcess.run(
            ["bash", "-c", "promtool check metrics <\"$0\"", file], program: "/usr/bin/env")
        #expect(exit == .status(0), "\(output)")
    }

    @Test func `a catalog in which every change concerns others too is refused`() throws {
        let gateway = try LocalGateway()
        let game = try GameFixture(gateway)
        let put = try game.put(
            """
            app: \(GameFixture.app)
            entities: { Character: {} }
            intents: { One: { parameters: [{ name: list, type: "[Character]" }] } }
            widgets:
              - kind: all
                configuration: static
                families: [systemSmall]
                dependsOn: [{ entity: Character }]
              - kind: own
                configuration: appIntent
                intent: One
                families: [systemSmall]
                dependsOn: [{ entity: Character, match: { id: $client.account } }]
            """)
        try #require(put == 200)
        let refused = try Self.run(gateway, "--once")
        #expect(refused.exit == .status(2))
        #expect(refused.output.contains("affect a single widget"), "\(refused.output)")
    }
}
