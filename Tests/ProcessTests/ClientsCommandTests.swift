import GatewayTestSupport
import Testing
import WidgetModel

extension ProcessTests {
    /// `timelinectl clients` against a real gateway.
    @Suite struct ClientsCommandTests {
        @Test func `clients are listed by page, shown, and erased by what they have in common`()
            throws
        {
            let gateway = try GatewayProcess()
            let game = try GameFixture(gateway)
            for (name, account) in [("one", "42"), ("three", "42"), ("two", "7")] {
                let token = try gateway.token(
                    app: GameFixture.app, scope: "client", sub: name,
                    attributes: ["account=\(account)"])
                let answer = try gateway.http().register(
                    name, app: GameFixture.app, token: token,
                    [
                        "platform": "iOS",
                        "widgets": [
                            [
                                "kind": "detail", "family": "systemSmall",
                                "parameters": ["character": "a"],
                            ]
                        ],
                    ])
                try #require(answer.status == 201, "\(answer.text)")
            }
            func run(_ arguments: [String]) throws -> (exit: GatewayProcessExit, output: String) {
                try GatewayProcess.run(
                    ["clients"] + arguments + [
                        "--url", gateway.url, "--ca", gateway.ca, "--token", game.backend, "--app",
                        GameFixture.app,
                    ], program: GatewayProcess.program(named: "timelinectl"))
            }
            let page = try run(["list", "--limit", "2"]).output
            #expect(page.contains("\none ") && page.contains("\nthree "))
            #expect(page.hasSuffix("next page: --after three\n"))
            let rest = try run(["list", "--after", "three"]).output
            #expect(rest.contains("\ntwo ") && !rest.contains("one") && !rest.contains("next page"))
            let ours = try run(["list", "--attribute", "account:42", "--json"]).output
            let listed = try JSONValue(parsing: Array(ours.utf8)).objectValue?["clients"]?
                .arrayValue
            #expect(
                listed?.compactMap { $0.objectValue?["client"]?.stringValue } == ["one", "three"])
            #expect(try run(["show", "one"]).output.contains(#""account":"42""#))
            let asked = try run(["erase", "--attribute", "account:42"])
            #expect(asked.output == "would erase 2 clients; repeat with --yes to erase them\n")
            #expect(
                try run(["erase", "--attribute", "account:42", "--yes"]).output
                    == "erased 2 clients\n")
            #expect(try run(["show", "one"]).exit == .status(1))
            #expect(try run(["show", "two"]).exit == .status(0))
        }
    }
}
