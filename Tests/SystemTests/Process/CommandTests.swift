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

/// `timelinectl clients` against a real gateway.
@Suite(.alone) struct ClientsCommandTests {
    @Test func `clients are listed by page, shown, and erased by what they have in common`()
        throws
    {
        let gateway = try LocalGateway()
        let game = try GameFixture(gateway)
        for (name, account) in [("one", "42"), ("three", "42"), ("two", "7")] {
            let token = try gateway.token(
                app: GameFixture.app, scope: "client", sub: name,
                attributes: ["account=\(account)"])
            let answer = try gateway.http().register(
                name, app: GameFixture.app, token: token,
                registration(showing: ["a"]))
            try #require(answer.status == 201, "\(answer.text)")
        }
        func run(
            _ arguments: [String], of command: String = "clients"
        ) throws -> (exit: GatewayProcessExit, output: String) {
            try gateway.timelinectl(
                [command] + arguments, token: game.backend, app: GameFixture.app)
        }
        let page = try run(["list", "--limit", "2"]).output
        #expect(page.contains("\none ") && page.contains("\nthree "))
        #expect(page.hasSuffix("next page: --after three\n"))
        let rest = try run(["list", "--after", "three"]).output
        #expect(rest.contains("\ntwo ") && !rest.contains("one") && !rest.contains("next page"))
        let ours = try run(["list", "--attribute", "account:42", "--json"]).output
        let listed = try JSONValue(parsing: Array(ours.utf8)).objectValue?["clients"]?
            .arrayValue
        #expect(listed?.compactMap { $0.objectValue?["client"]?.stringValue } == ["one", "three"])
        #expect(try run(["show", "one"]).output.contains(#""account":"42""#))
        let asked = try run(["erase", "--attribute", "account:42"])
        #expect(asked.output == "would erase 2 clients; repeat with --yes to erase them\n")
        #expect(
            try run(["erase", "--attribute", "account:42", "--yes"]).output
                == "erased 2 clients\n")
        #expect(try run(["show", "one"]).exit == .status(1))
        #expect(try run(["list", "--attribute", "account=7"]).output.contains("\ntwo "))
        #expect(try run(["show", "two"]).exit == .status(0))
        #expect(try run(["delete", "two"]).output == "deleted two\n")
        #expect(try run(["delete", "two"]).exit == .status(1))
        #expect(try run(["list"]).output == "no clients\n")
    }

    @Test func `a misspelt name is found by post, and the change by its list`() throws {
        let gateway = try LocalGateway()
        let game = try GameFixture(gateway)
        func run(_ arguments: [String]) throws -> (exit: GatewayProcessExit, output: String) {
            let operations = try gateway.token(
                app: GameFixture.app, scope: "changes:write operator:read")
            return try gateway.timelinectl(arguments, token: operations, app: GameFixture.app)
        }
        #expect(!game.backend.isEmpty)
        #expect(
            try run(["post", "--entity", "Character", "--id", "a", "--strict"]).exit
                == .status(0))
        #expect(try run(["post", "--entity", "Charcter", "--id", "a"]).exit == .status(0))
        let strict = try run(["post", "--entity", "Charcter", "--id", "a", "--strict"])
        #expect(strict.exit == .status(1))
        #expect(strict.output.contains("1 matched no rule"))
        #expect(strict.output.contains("Character"))
        let unmatched = try run(["changes", "--unmatched"]).output.split(separator: "\n")
        #expect(unmatched.count == 3)
        #expect(unmatched.dropFirst().allSatisfy { $0.contains("Charcter a") })
        #expect(
            try run(["changes", "--entity", "Character"]).output.split(separator: "\n").count
                == 2)
        #expect(try run(["changes", "--entity", "Nobody"]).output == "no changes\n")
        #expect(try run(["post", "--entitty", "X"]).output.contains("--entitty"))
        let shown = try run(["catalog", "show"])
        #expect(shown.exit == .status(0) && shown.output.contains("Character"))
    }
}

/// The completion scripts of both programs, and `timelinectl keys`.
@Suite(.alone) struct CommandLineTests {
    @Test(arguments: ["timelinectl", "timeline-gateway"], ["bash", "zsh", "fish"])
    func `a shell completes the program's words`(program: String, shell: String) throws {
        let run = try GatewayProcess.run(
            ["--generate-completion-script", shell],
            program: GatewayProcess.program(named: program))
        #expect(run.exit == .status(0))
        for word in program == "timelinectl" ? ["backup", "canary"] : ["serve", "epoch"] {
            #expect(run.output.contains(word), "\(word)")
        }
        let path = "/usr/bin/\(shell)"
        // Without the shell its script cannot be tested.
        guard FileManager.default.isExecutableFile(atPath: path) else { return }
        let file = try GatewayProcess.temporaryDirectory() + "/script"
        try run.output.write(toFile: file, atomically: true, encoding: .utf8)
        let check = try GatewayProcess.run(["-n", file], program: path)
        #expect(check.exit == .status(0), "\(check.output)")
    }

    @Test func `published keys are shown, with what each does`() throws {
        let gateway = try GatewayProcess(admin: GatewayProcess.freeAddress())
        func keys(_ more: String...) throws -> (exit: GatewayProcessExit, output: String) {
            try GatewayProcess.timelinectl(
                ["keys", "--url", gateway.url, "--ca", gateway.ca] + more)
        }
        let text = try keys()
        #expect(text.exit == .status(0))
        #expect(text.output.contains("EdDSA") && text.output.contains("cached by clients: "))
        let own = try GatewayProcess.run(["keys", "list", "--data", gateway.data, "--json"])
        let kid = try JSONValue(parsing: Array(own.output.utf8)).objectValue?["kid"]
        let json = try keys("--admin", gateway.admin, "--json")
        let shown = try JSONValue(parsing: Array(json.output.utf8)).objectValue?["keys"]
        #expect(
            shown == [
                ["kid": kid ?? .null, "alg": "EdDSA", "usable": true, "state": "signing"]
            ], "\(json.output)")
    }

    @Test func `tokens are issued on the gateway's machine`() throws {
        let gateway = try GatewayProcess()
        let app = GameFixture.app
        let file = gateway.data + "/subs"
        try "one\ntwo".write(toFile: file, atomically: true, encoding: .utf8)
        func tokens(_ arguments: String...) throws -> [String] {
            let (exit, output) = try GatewayProcess.run(
                ["token", "--data", gateway.data, "--app", app, "--scope"] + arguments)
            #expect(exit == .status(0), "\(output)")
            return output.split(separator: "\n").map(String.init)
        }
        let backend = try tokens("catalog:write clients:write")
        try gateway.http().putCatalog(GameFixture.catalog(), app: app, token: backend[0])
        for (client, token) in zip(
            ["phone", "one", "two"],
            try tokens("client", "--sub", "phone", "--attribute", "account=42")
                + tokens("client", "--subs-from", file))
        {
            let answer = try gateway.http().register(
                client, app: app, token: token, ["platform": "iOS"])
            #expect(answer.status == 201, "\(answer.text)")
        }
        let phone = try gateway.http().request(
            "GET", "/v1/apps/\(app)/clients/phone", token: backend[0])
        #expect(phone["attributes"] == ["account": "42"])
    }
}

/// `timelinectl reload` against a real gateway.
@Suite(.alone) struct ReloadCommandTests {
    @Test func `a kind, one client or everything is reloaded, also after a restart`() throws {
        let gateway = try GatewayProcess()
        let game = try GameFixture(gateway)
        let one = try game.client("one", ["a", "b"])
        let two = try game.client("two", ["a"])
        func run(_ arguments: [String]) throws -> (exit: GatewayProcessExit, output: String) {
            try gateway.timelinectl(
                ["reload"] + arguments, token: game.backend, app: GameFixture.app)
        }
        func stale() throws -> [[String]] {
            try [one, two].map { try game.poll($0, since: $0.cursor).stale }
        }
        let answer = try run(["--client", "one"])
        #expect(answer.exit == .status(0) && answer.output.contains("of the log"))
        #expect(try stale() == [["everything"], []])
        #expect(try run(["--client", "nobody"]).exit == .status(1))
        #expect(try run(["--client", "one", "--all"]).exit == .status(2))
        #expect(try run(["--kind", "no-such"]).exit == .status(1))
        gateway.kill()
        try gateway.start()
        #expect(try stale() == [["everything"], []], "it is in the log")
        #expect(try run(["--kind", "detail"]).exit == .status(0))
        #expect(try stale() == [["everything"], ["detail"]])
        #expect(try run(["--all"]).exit == .status(0))
        #expect(try stale() == [["everything"], ["everything"]])
    }
}
