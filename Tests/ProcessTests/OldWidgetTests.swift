import APNsSimulator
import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

extension ProcessTests {
    /// "Users say that their widget is old": each cause is found in at most three steps, from the
    /// command line and from the answers that the dashboard shows.
    @Suite struct OldWidgetTests {
        private static let catalog = """
            app: \(PushFixture.app)
            entities: { Character: { properties: [health, name] }, Account: { properties: [] } }
            intents: { One: { parameters: [{ name: character, type: Character }] } }
            widgets:
              - kind: detail
                configuration: appIntent
                intent: One
                families: [systemSmall]
                dependsOn: [{ entity: Character, match: { id: $character }, properties: [health] }]
              - kind: status
                configuration: static
                families: [systemSmall]
                dependsOn: [{ entity: Account, match: { id: $client.account } }]
            """

        /// A gateway with one client for each cause.
        private final class World {
            let push: PushFixture
            let admin: TestHTTP
            let http: TestHTTP
            private var events = 0

            init() throws {
                let port = try GatewayProcess.freePort()
                push = try PushFixture(
                    options: ["interval: 1s", "widgetsPerDay: 1"], admin: "127.0.0.1:\(port)")
                http = push.gateway.http()
                admin = TestHTTP(url: "http://127.0.0.1:\(port)", ca: push.gateway.ca)
                let put = try http.request(
                    "PUT", "/v1/apps/\(PushFixture.app)/catalog", token: push.backend,
                    headers: [("Content-Type", "application/yaml")], body: OldWidgetTests.catalog)
                guard put.status == 200 else { throw TestFailure(put.text) }
            }

            func register(
                _ client: String, _ character: String, attribute: String, token: String? = nil
            ) throws {
                var delivery: [JSONValue] = [["type": "stream"]]
                if let token {
                    delivery.append([
                        "type": "apns", "pushType": "widgets", "token": .string(token),
                        "environment": "production",
                    ])
                }
                let answer = try http.register(
                    client, app: PushFixture.app, token: push.backend,
                    [
                        "platform": "iOS", "attributes": .object([attribute: "1"]),
                        "widgets": [
                            [
                                "kind": "detail", "family": "systemSmall",
                                "parameters": ["character": .string(character)],
                            ], ["kind": "status", "family": "systemSmall", "parameters": [:]],
                        ], "delivery": .array(delivery),
                    ])
                guard answer.status == 201 else { throw TestFailure(answer.text) }
            }

            @discardableResult
            func change(_ character: String, _ property: String) throws -> Int64 {
                events += 1
                let event: JSONValue = [
                    "specversion": "1.0", "type": "changed", "source": "shop",
                    "id": .string("\(events)"),
                    "data": [
                        "entity": "Character", "id": .string(character),
                        "properties": [.string(property)],
                    ],
                ]
                let answer = try http.post([event], app: PushFixture.app, token: push.backend)
                guard answer.status == 202, let sequence = answer["sequence"]?.integerValue else {
                    throw TestFailure(answer.text)
                }
                return sequence
            }

            /// Reads what a page of the dashboard reads.
            func read(_ path: String) throws -> JSONObject {
                let answer = try admin.request("GET", "/v1/apps/\(PushFixture.app)\(path)")
                guard answer.status == 200, let object = answer.json?.objectValue else {
                    throw TestFailure("\(path): \(answer.text)")
                }
                return object
            }

            func timelinectl(_ arguments: [String]) throws -> String {
                let (exit, output) = try GatewayProcess.run(
                    arguments + [
                        "--url", push.gateway.url, "--ca", push.gateway.ca,
                        "--token", push.backend, "--app", PushFixture.app,
                    ], program: GatewayProcess.program(named: "timelinectl"))
                guard exit == .status(0) else { throw TestFailure(output) }
                return output
            }

            /// Explains a client until the answer has a word.
            func explain(_ client: String, until word: String) async throws -> String {
                var output = ""
                for _ in 0..<200 {
                    output = try timelinectl(["explain", "client", client])
                    if output.contains(word) { return output }
                    try await Task.sleep(for: .milliseconds(50))
                }
                throw TestFailure("no `\(word)` in: \(output)")
            }
        }

        @Test func `the device is offline`() async throws {
            let world = try World()
            try world.register("offline-1", "fox", attribute: "account")
            let change = try world.change("fox", "health")
            let list = try world.timelinectl(["clients", "list", "--prefix", "offline-"])
            #expect(list.contains("offline-1") && list.contains("1 stale"), "\(list)")
            #expect(list.contains("T") && list.contains("Z"), "no time: \(list)")
            let text = try await world.explain("offline-1", until: "awaits-client")
            #expect(text.contains("last seen 2"), "\(text)")
            #expect(text.contains("by change \(change)") && !text.contains("or earlier"))
            let listed = try world.read("/clients?prefix=offline-")["clients"]?.arrayValue?.first
            #expect(listed?["stale"] == 1 && listed?["lastSeen"] != nil && listed?["streams"] == 0)
            let page = try world.read("/clients/offline-1/explain")
            let item = page["widgets"]?.arrayValue?.first
            #expect(item?["fresh"] == false && item?["reason"] == "awaits-client")
            #expect(page["lastSeen"] != nil && page["heardOf"] == true)
            await world.push.stop()
        }

        @Test func `its push token is dead`() async throws {
            let world = try World()
            world.push.apns.script("bb01", [.refused(.unregistered)])
            try world.register("dead-1", "owl", attribute: "account", token: "bb01")
            try world.change("owl", "health")
            let text = try await world.explain("dead-1", until: "address removed at")
            #expect(text.contains("widgets address removed at 2"), "\(text)")
            #expect(text.contains(": Unregistered"), "\(text)")
            let page = try world.read("/clients/dead-1/explain")
            let removed = page["removedAddresses"]?.arrayValue?.first
            #expect(removed?["channel"] == "widgets" && removed?["reason"] == "Unregistered")
            #expect(page["addresses"] == [])
            let attempts = try world.read("/attempts?client=dead-1")["attempts"]?.arrayValue
            #expect(attempts?.last?["sequence"]?.integerValue ?? 0 > 1)
            // Once a new token is registered, nothing is missing.
            let again = try world.http.request(
                "PATCH", "/v1/apps/\(PushFixture.app)/clients/dead-1", token: world.push.backend,
                body: JSONValue.object([
                    "delivery": [
                        [
                            "type": "apns", "pushType": "widgets", "token": "bb02",
                            "environment": "production",
                        ]
                    ]
                ]).text)
            #expect(again.status == 200, "\(again.text)")
            #expect(try world.read("/clients/dead-1/explain")["removedAddresses"] == nil)
            await world.push.stop()
        }

        @Test func `its push budget is used up`() async throws {
            let world = try World()
            try world.register("busy-1", "cat", attribute: "account", token: "cc01")
            try world.change("cat", "health")
            try await world.push.until("pushed to") { $0.devices["cc01"]?.taken == 1 }
            try world.change("cat", "health")
            let text = try await world.explain("busy-1", until: "withheld budget until 2")
            #expect(text.contains("budget: 0 of 1 pushes left, next at 2"), "\(text)")
            #expect(text.contains(", 1 a day"), "\(text)")
            let page = try world.read("/clients/busy-1/explain")
            let budget = page["addresses"]?.arrayValue?.first?["budget"]
            #expect(budget?["left"] == 0 && budget?["burst"] == 1 && budget?["perDay"] == 1)
            #expect(budget?["refillsAt"] != nil)
            await world.push.stop()
        }

        @Test func `its rule wants other properties`() async throws {
            let world = try World()
            try world.register("quiet-1", "elk", attribute: "account")
            for _ in 0..<3 { try world.change("fox", "health") }
            let change = try world.change("elk", "name")
            let found = try world.read("/changes?entity=Character&entityID=elk")
            #expect(found["changes"]?.arrayValue?.map { $0["sequence"] } == [.integer(change)])
            let page = try world.read("/changes/\(change)/explain")
            let rule = page["rules"]?.arrayValue?.first
            #expect(rule?["verdict"] == "properties-not-listed")
            #expect(rule?["properties"] == ["health"] && rule?["operations"] == nil)
            let list = try world.timelinectl(["changes", "--unmatched"])
            #expect(list.contains("\(change)"), "\(list)")
            let text = try world.timelinectl(["explain", "change", "\(change)"])
            #expect(text.contains("properties-not-listed"), "\(text)")
            #expect(text.contains("wants health"), "\(text)")
            await world.push.stop()
        }

        @Test func `it lacks an attribute, or has another by a typing error`() async throws {
            let world = try World()
            try world.register("lost-1", "bee", attribute: "acount")
            let list = try world.timelinectl(["clients", "list"])
            #expect(list.contains("fresh, 1 lack attributes"), "\(list)")
            let text = try await world.explain("lost-1", until: "depends on nothing")
            #expect(text.contains("no client attribute account"), "\(text)")
            #expect(text.contains("misspell it as `acount`?"), "\(text)")
            let listed = try world.read("/clients")["clients"]?.arrayValue?.first
            #expect(listed?["dependOnNothing"] == 1)
            let page = try world.read("/clients/lost-1/explain")
            let item = page["widgets"]?.arrayValue?.last
            #expect(item?["dependsOnNothing"] == true && item?["fresh"] == nil)
            #expect(item?["lacks"] == ["account"])
            #expect(page["warnings"]?.arrayValue?.count == 1)
            let apps = try world.admin.request("GET", "/api/apps")
            let kinds = apps["apps"]?.arrayValue?.first?["kinds"]?.arrayValue ?? []
            let status = kinds.first { $0["kind"] == "status" }
            #expect(status?["clientsLacking"] == 1 && status?["lacking"] == ["account"])
            await world.push.stop()
        }

        /// After a start it is unknown which change came first.
        @Test func `a time that is only a bound is said to be one`() async throws {
            let world = try World()
            try world.register("offline-1", "fox", attribute: "account")
            for _ in 0..<2 { try world.change("fox", "health") }
            let before = try await world.explain("offline-1", until: "stale since")
            #expect(!before.contains("or earlier"), "\(before)")
            world.push.gateway.kill()
            try world.push.gateway.restart()
            let after = try await world.explain("offline-1", until: "stale since")
            #expect(after.contains(" or earlier by change"), "\(after)")
            #expect(after.contains("last seen 2"), "\(after)")
            let list = try world.timelinectl(["clients", "list"])
            #expect(list.contains("unknown"), "\(list)")
            await world.push.stop()
        }
    }
}

extension JSONValue {
    /// A member of an object.
    fileprivate subscript(name: String) -> JSONValue? { objectValue?[name] }
}
