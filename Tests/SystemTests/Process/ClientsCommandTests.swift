import GatewayTestSupport
import Testing
import WidgetModel

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
