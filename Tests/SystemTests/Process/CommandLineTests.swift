import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

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
