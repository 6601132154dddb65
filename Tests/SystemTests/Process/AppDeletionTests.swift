import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// An app is removed, wholly or not at all, and may start again.
@Suite(.alone) struct AppDeletionTests {
    private static let app = "/v1/apps/\(GameFixture.app)"

    @Test func `an app goes with its clients, and begins anew without its past`() throws {
        let gateway = try GatewayProcess()
        let game = try GameFixture(gateway)
        let client = try game.client("phone", ["panda"])
        let stream = game.stream(client)
        _ = stream.next()
        let before = try game.change(gateway.http(), ["panda"], run: "one")
        let cursor = try game.poll(client, since: client.cursor).cursor
        func run(_ arguments: String...) throws -> (exit: GatewayProcessExit, output: String) {
            try gateway.timelinectl(["app", "delete"] + arguments, token: game.backend)
        }
        // There is no terminal to ask for a confirmation on.
        let asked = try run(GameFixture.app)
        #expect(asked.exit == .status(2) && asked.output.contains("--yes"))
        let deleted = try run(GameFixture.app, "--yes")
        #expect(deleted.output == "deleted com.mygame and its 1 client\n")
        let again = try run(GameFixture.app, "--yes")
        #expect(again.exit == .status(1) && again.output.contains("no catalog"))

        var end = stream.next()
        while case .block = end { end = stream.next() }
        guard case .ended = end else {
            Issue.record("the stream goes on: \(String(describing: end))")
            return
        }
        for start in [false, true] {
            if start { try gateway.restart() }
            let http = gateway.http()
            for (method, path) in [
                ("GET", "/catalog"), ("GET", "/clients"), ("GET", "/changes"),
                ("GET", "/clients/phone/explain"), ("DELETE", ""),
            ] {
                let answer = try http.request(method, Self.app + path, token: game.backend)
                #expect(answer.status == 404, "\(method) \(path) after a start: \(start)")
            }
        }

        let anew = try GameFixture(gateway)
        #expect(
            try gateway.http().request("GET", Self.app + "/clients", token: game.backend)[
                "clients"] == [])
        #expect(
            try gateway.http().request("GET", Self.app + "/changes", token: game.backend)[
                "changes"] == [])
        #expect(throws: TestFailure.self) { try anew.poll(client, since: cursor) }
        let back = try anew.client("phone", ["panda"])
        #expect(try anew.poll(back, since: cursor).stale == ["detail"])
        #expect(try anew.poll(back, since: back.cursor).stale == [])
        // Event ids of the removed app are not duplicates now.
        let post = try gateway.http().post(
            [event(source: "one", id: "0", entity: "Character", key: "panda")],
            app: GameFixture.app, token: game.backend)
        #expect(post["accepted"] == 1 && post["duplicates"] == 0)
        #expect(try #require(post["sequence"]?.integerValue) > Int64(before))
        #expect(try anew.poll(back, since: back.cursor).stale == ["detail character=panda"])
        try gateway.restart()
        #expect(try anew.poll(back, since: back.cursor).stale == ["detail character=panda"])
        #expect(try anew.poll(back, since: cursor).stale == ["detail"])
    }

    @Test func `a gateway that is killed while an app goes has it wholly or not at all`() throws {
        let gateway = try GatewayProcess()
        let (rounds, clients) = (6, 100)
        var outcomes: Set<Bool> = []
        for round in 0..<rounds {
            let game = try GameFixture(gateway)
            let http = gateway.http()
            for number in 0..<clients {
                let answer = try http.register(
                    "client\(number)", app: GameFixture.app, token: game.backend,
                    ["platform": "iOS", "attributes": ["account": "42"]])
                try #require(answer.status == 201, "\(answer.text)")
            }
            let answered = TestHTTPMonitor<Bool?>(nil)
            onThread {
                let answer = try? gateway.http().request("DELETE", Self.app, token: game.backend)
                answered.update { $0 = answer?.status == 200 }
            }
            func wasAnswered() throws -> Bool {
                guard let answer: Bool = answered.wait(seconds: Patience.seconds, { $0 }) else {
                    throw TestFailure("the request does not end")
                }
                return answer
            }
            // From before the arrival of the request to after its answer.
            if round < rounds - 1 {
                usleep(UInt32(round) * 3_000)
            } else {
                #expect(try wasAnswered())
            }
            try gateway.restart()
            // The request may not have been sent before the restart: it must not remove the app
            // between two of the requests below.
            let isAnswered = try wasAnswered()
            let catalog = try gateway.http().request(
                "GET", Self.app + "/catalog", token: game.backend)
            let isThere = catalog.status == 200
            outcomes.insert(isThere)
            #expect(!(isThere && isAnswered), "what was answered came back")
            // A removed app can get a first catalog again, and has none of its clients.
            if !isThere { _ = try GameFixture(gateway) }
            let list = try gateway.http().request(
                "GET", Self.app + "/clients?limit=1000", token: game.backend)
            #expect(list["clients"]?.arrayValue?.count == (isThere ? clients : 0))
            let found = try gateway.http().request(
                "GET", Self.app + "/clients?attribute=account:42&limit=1000",
                token: game.backend)
            #expect(found["clients"]?.arrayValue?.count == (isThere ? clients : 0))
            let rest = try gateway.http().request("DELETE", Self.app, token: game.backend)
            #expect(rest["clients"] == .integer(isThere ? Int64(clients) : 0))
        }
        #expect(outcomes.contains(false), "no deletion was ever finished")
    }
}
