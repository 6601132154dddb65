import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

extension ProcessTests {
    /// `timelinectl canary --audit` against a real gateway, which stands for two nodes by two URLs.
    @Suite struct AuditTests {
        private static func run(_ gateway: GatewayProcess, _ more: [String]) throws -> TestProgram {
            let token = try gateway.token(
                app: GameFixture.app, scope: "catalog:write changes:write client",
                sub: "timeline-canary")
            return try TestProgram(
                GatewayProcess.program(named: "timelinectl"),
                [
                    "canary", "--audit", "--ca", gateway.ca, "--token", token, "--app",
                    GameFixture.app,
                ] + more)
        }

        /// Returns the last line of JSON.
        private static func last(_ audit: TestProgram) throws -> JSONObject {
            let text = try #require(audit.waitForOutput(seconds: 10))
            let line = try #require(text.split(separator: "\n").last, "\(audit.standardErrorTail)")
            return try #require(try JSONValue(parsing: Array(line.utf8)).objectValue)
        }

        /// Returns a share of a report; `nil` while it is not known.
        private static func share(_ value: JSONValue?) -> Double? {
            switch value {
            case .integer(let number): Double(number)
            case .number(let number): number
            default: nil
            }
        }

        private static func nodes(_ report: JSONObject) -> [JSONObject] {
            (report["nodes"]?.arrayValue ?? []).compactMap(\.objectValue)
        }

        @Test func `every change is delivered at every node, and a change held back is seen`()
            throws
        {
            let gateway = try GatewayProcess()
            let game = try GameFixture(gateway)
            let port = try #require(URL(string: gateway.url)?.port)
            let relay = try TCPRelay(to: port)
            let held = "https://127.0.0.1:\(relay.port)"
            let file = gateway.data + "/audit.prom"
            let arguments = [
                "--node", gateway.url, "--node", held, "--interval", "1", "--json", "--textfile",
                file,
            ]

            let whole = try Self.run(gateway, arguments + ["--for", "4"])
            #expect(whole.waitForExit(seconds: 60) == .status(0), "\(whole.output)")
            let report = try Self.last(whole)
            #expect(Self.share(report["reliability"]) == 1, "\(report)")
            #expect(report["changes"]?.integerValue ?? 0 >= 3)
            #expect(Self.nodes(report).map { $0["node"] } == [.string(gateway.url), .string(held)])
            for node in Self.nodes(report) {
                #expect(node["connected"] == true && node["missing"] == 0, "\(node)")
                #expect(Self.share(node["within1s"]) ?? 0 > 0 && node["reason"] == nil, "\(node)")
            }
            let clients = try gateway.http().request(
                "GET", "/v1/apps/\(GameFixture.app)/clients", token: game.backend)
            #expect(clients["clients"]?.arrayValue?.count == 0, "the auditor stayed")
            let page = MetricsHistory.page(try String(contentsOfFile: file, encoding: .utf8))
            let app = "app=\"\(GameFixture.app)\""
            #expect(page["timeline_audit_reliability_ratio{\(app)}"] == 1)
            #expect(page["timeline_audit_connected{\(app),node=\"\(held)\"}"] == 1)
            let check = try GatewayProcess.run(
                ["bash", "-c", "promtool check metrics <\"$0\"", file], program: "/usr/bin/env")
            #expect(check.exit == .status(0), "\(check.output)")

            let audit = try Self.run(gateway, arguments)
            var line = 0
            while try Self.share(audit.json(line: line)?["reliability"]) != 1 { line += 1 }
            try relay.becomeBlackHole()
            var fallen: JSONObject = [:]
            repeat {
                line += 1
                fallen = try #require(try audit.json(line: line))
            } while Self.share(fallen["reliability"]) == 1
            audit.interrupt()
            #expect(audit.waitForExit(seconds: 60) == .status(1), "\(audit.standardErrorTail)")
            let end = try Self.last(audit)
            #expect(Self.share(end["reliability"]) ?? 1 < 0.999, "\(end)")
            let nodes = Self.nodes(end)
            #expect(Self.share(nodes.first?["within10s"]) == 1, "\(end)")
            #expect(Self.share(nodes.last?["within10s"]) ?? 1 < 1, "\(end)")
            #expect(nodes.last?["reason"]?.stringValue?.contains("\(relay.port)") == true, "\(end)")
            let metrics = MetricsHistory.page(try String(contentsOfFile: file, encoding: .utf8))
            #expect(metrics["timeline_audit_reliability_ratio{\(app)}"] ?? 1 < 0.999)
        }

        @Test func `a gateway that is gone is no objective met`() throws {
            let gateway = try GatewayProcess()
            _ = try GameFixture(gateway)
            let audit = try Self.run(gateway, ["--url", gateway.url, "--interval", "1", "--json"])
            var line = 0
            while try Self.share(audit.json(line: line)?["reliability"]) != 1 { line += 1 }
            gateway.kill()
            repeat { line += 1 } while try Self.share(audit.json(line: line)?["reliability"]) == 1
            audit.interrupt()
            #expect(audit.waitForExit(seconds: 60) == .status(1), "\(audit.standardErrorTail)")
            let node = Self.nodes(try Self.last(audit)).first
            #expect(node?["connected"] == false && node?["reason"] != nil, "\(audit.output)")
        }

        @Test(arguments: [
            ["--once"], ["--patience", "3"], ["--interval", "61"], ["--objective", "1.5"],
            ["--for", "0"], ["--node", "http://localhost"],
            ["--node", "https://localhost", "--node", "https://localhost"],
        ]) func `a wrong command line`(arguments: [String]) throws {
            let (exit, output) = try GatewayProcess.run(
                ["canary", "--audit", "--app", GameFixture.app, "--url", "https://localhost"]
                    + arguments, program: GatewayProcess.program(named: "timelinectl"))
            #expect(exit == .status(2), "\(output)")
        }
    }
}
