import GatewayTestSupport
import Testing
import WidgetModel

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
