import ClusterTestSupport
import GatewayCore
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayPostgres
@testable import GatewayRecords

/// Two nodes that write and apply one log.
@Suite(.enabled(if: PostgresServer.isInstalled)) struct FleetLogTests {
    private func nodes(
        _ body: (EngineFixture, EngineFixture) async throws -> Void
    ) async throws {
        let cluster = try ClusterFixture()
        let one = try await EngineFixture.node(1, of: cluster)
        let two = try await EngineFixture.node(2, of: cluster)
        try await one.put(["hero"])
        try await two.reached(one.log.head)
        try await body(one, two)
        try await one.stop()
        try await two.stop()
    }

    @Test func `what one node writes every node applies, in one order`() async throws {
        try await nodes { one, two in
            var sequences: [UInt64] = []
            for number in 0..<20 {
                let node = number.isMultiple(of: 2) ? one : two
                let event = EngineFixture.event("\(number)")
                sequences.append(
                    try await node.changes.post([event], app: EngineFixture.app).sequence)
            }
            #expect(sequences == Array(2...21))
            try await one.reached(21)
            try await two.reached(21)
            for key in [one, two].map({ $0.changes.accepted.time(of: 21) }) {
                #expect(key != nil)
            }
        }
    }

    @Test func `an event is known at every node`() async throws {
        try await nodes { one, two in
            let posts = [EngineFixture.event("a"), EngineFixture.event("b")]
            _ = try await one.changes.post(posts, app: EngineFixture.app)
            let again = try await two.changes.post(posts, app: EngineFixture.app)
            #expect((again.accepted, again.duplicates, again.sequence) == (0, 2, 3))
            let error = await #expect(throws: EngineError.self) {
                try await two.changes.post(
                    [EngineFixture.event("a", health: "2")], app: EngineFixture.app)
            }
            #expect(error?.code == "event-id-reused")
        }
    }

    @Test func `a registration through one node is in force at another that holds it`()
        async throws
    {
        try await nodes { one, two in
            _ = try await one.register("phone")
            // Held from its own registration on.
            _ = try await two.register("phone", hero: "fox")
            let position = try await one.register("phone", hero: "owl").position
            try await two.reached(position)
            let key = EngineFixture.key("phone")
            for node in [one, two] {
                #expect(node.registry.record(key)?.attributes["hero"] == ["owl"])
            }
            #expect(try await two.log.remove(key))
            try await one.reached(two.log.head)
            #expect(one.registry.record(key) == nil)
            #expect(try await one.register("phone").isNew)
        }
    }

    @Test func `patches of one client at two nodes at once are all kept`() async throws {
        try await nodes { one, two in
            _ = try await one.register("phone")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<6 {
                    let node = number.isMultiple(of: 2) ? one : two
                    group.addTask {
                        _ = try await node.clients.register(
                            EngineFixture.key("phone"),
                            .patch(["attributes": ["n\(number)": "x"]]), by: .backend)
                    }
                }
                try await group.waitForAll()
            }
            let head = max(one.log.head, two.log.head)
            for node in [one, two] {
                try await node.reached(head)
                let record = node.registry.record(EngineFixture.key("phone"))
                #expect(record?.attributes.count == 7)
            }
        }
    }

    @Test func `catalogs put by two nodes at once come into force in one order`() async throws {
        try await nodes { one, two in
            let sequences = try await withThrowingTaskGroup(of: UInt64.self) { group in
                for number in 0..<6 {
                    let node = number.isMultiple(of: 2) ? one : two
                    group.addTask {
                        try await node.put(["kind\(number)"]).document.sequence
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(sequences.sorted() == Array(2...7))
            for node in [one, two] { try await node.reached(7) }
            let etags = [one, two].map { $0.catalogs.document(of: EngineFixture.app)?.etag }
            #expect(etags[0] != nil && etags[0] == etags[1])
            let rules = [one, two].map { $0.catalogs.ruleSet(of: EngineFixture.app) }
            #expect(rules[0]?.sequence == rules[1]?.sequence)
        }
    }

    @Test func `an app removed at one node is gone at the other, with its clients`() async throws {
        try await nodes { one, two in
            _ = try await one.register("phone")
            _ = try await two.register("tablet")
            let removal = try await two.changes.removeApp(EngineFixture.app)
            try await one.reached(removal.sequence)
            for node in [one, two] {
                #expect(node.catalogs.document(of: EngineFixture.app) == nil)
                #expect(node.registry.count == 0)
            }
            try await one.put(["hero"])
            #expect(try await one.log.registration(EngineFixture.key("tablet")) == nil)
        }
    }
}
