import APNsSimulator
import ClusterTestSupport
import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// Pushes of two gateways to the clients that they share.
@Suite(.enabled(if: PostgresServer.isInstalled), .repeatedAfterStalls)
struct ClusterPushTests {
    private static let devices = 6

    private struct World {
        let gateways: ClusterGateways
        let apns: APNsServer

        init() throws {
            gateways = try ClusterGateways(ClusterFixture(), pushes: true)
            apns = try #require(gateways.apns)
        }

        /// Registers devices, alternately at the nodes.
        func register(at nodes: [GatewayProcess]) throws {
            for number in 0..<ClusterPushTests.devices {
                let answer = try gateways.register(
                    "phone\(number)", ["panda"], pushToken: token(number),
                    at: nodes[number % nodes.count])
                #expect(answer.status == 201, "\(answer.text)")
            }
        }

        func token(_ number: Int) -> String {
            String(repeating: "a", count: 60) + String(number + 1_000)
        }

        /// Posts a change that concerns all devices; returns its sequence.
        @discardableResult
        func change(_ id: String, at node: GatewayProcess) throws -> Int64 {
            let answer = try gateways.change("panda", id: id, at: node)
            #expect(answer.status == 202, "\(answer.text)")
            return try #require(answer["sequence"]?.integerValue)
        }

        /// Waits until this many pushes were accepted, and expects no more.
        func expectTaken(_ count: Int, _ node: GatewayProcess) async throws {
            try await eventually("pushed", details: { node.standardErrorTail }) {
                apns.record.taken >= count
            }
            #expect(apns.record.taken == count, "\(node.standardErrorTail)")
            #expect(apns.record.violations.isEmpty)
        }

        /// Registers other devices at one node, and posts a change that concerns them: those from
        /// before have spent their budget for the moment, and a push too many to them comes first.
        func pushToOthers(at node: GatewayProcess) async throws {
            for number in 0..<ClusterPushTests.devices {
                _ = try gateways.register(
                    "pad\(number)", ["hero"], pushToken: token(number + 100), at: node)
            }
            _ = try gateways.change("hero", id: "other", at: node)
            try await expectTaken(2 * ClusterPushTests.devices, node)
            #expect(apns.record.devices.count == 2 * ClusterPushTests.devices)
        }
    }

    @Test func `each device is pushed to once, whichever node it registered at`() async throws {
        let world = try World()
        let nodes = [try world.gateways.start(1), try world.gateways.start(2)]
        try world.gateways.putCatalog(nodes[0])
        try world.register(at: nodes)
        try world.change("1", at: nodes[1])
        try await world.expectTaken(Self.devices, nodes[0])
        #expect(world.apns.record.devices.count == Self.devices)
        try await world.pushToOthers(at: nodes[0])
        #expect(world.apns.record.providerTokens.count == 1, "of both nodes")
        await world.apns.stop()
    }

    @Test func `the other node pushes for one that was killed, and repeats nothing`() async throws {
        let world = try World()
        let (one, other) = (try world.gateways.start(1), try world.gateways.start(2))
        try world.gateways.putCatalog(one)
        try world.register(at: [one, other])
        try world.change("1", at: one)
        try await world.expectTaken(Self.devices, one)
        // A push that no node has written down is repeated. Attempts are, together with their clients.
        try blockUntil("the pushes are written down") {
            try one.http().request(
                "GET", "/v1/apps/\(ClusterGateways.app)/attempts",
                token: world.gateways.backend())["attempts"]?.arrayValue?.count == Self.devices
        }
        one.kill()
        try await world.pushToOthers(at: other)
        await world.apns.stop()
    }

    @Test func `a start that its leader died while pushing is pushed by the next one`()
        async throws
    {
        let world = try World()
        world.apns.script(world.token(0), [.silence(isTaken: false), .take])
        let source = try world.gateways.content()
        let (leader, other) = (try world.gateways.start(1), try world.gateways.start(2))
        let (app, backend) = (ClusterGateways.app, try world.gateways.backend())
        let catalog: JSONValue = [
            "app": .string(app), "widgets": [],
            "activities": [
                [
                    "type": "Battle",
                    "content": ["url": .string("https://localhost:\(source.port)/battle")],
                ]
            ],
        ]
        let put = try world.gateways.repeating {
            try leader.http().request(
                "PUT", "/v1/apps/\(app)/catalog", token: backend, body: catalog.text)
        }
        #expect(put.status == 201, "\(put.text)")
        let delivery: JSONValue = [
            "type": "apns", "pushType": "liveactivity", "token": .string(world.token(0)),
        ]
        let registered = try world.gateways.repeating {
            try other.http().register(
                "phone", app: app,
                token: world.gateways.token("phone", attributes: ["account": ["42"]]),
                [
                    "platform": "iOS",
                    "activityStarts": [["type": "Battle", "delivery": delivery]],
                ])
        }
        #expect(registered.status == 201, "\(registered.text)")
        // Which the other node passes on to its leader.
        func start() throws -> TestHTTPAnswer {
            let document: JSONValue = [
                "id": "battle-1", "type": "Battle", "attribute": "account:42",
                "alert": ["title": "Battle"],
            ]
            return try world.gateways.repeating {
                try other.http().request(
                    "POST", "/v1/apps/\(app)/activities", token: backend, body: document.text)
            }
        }
        let taken = try start()
        #expect(taken.status == 202, "\(taken.text)")
        try await eventually("pushed", details: { leader.standardErrorTail }) {
            world.apns.record.requests >= 1
        }
        leader.kill()
        #expect(world.apns.record.taken == 0)
        try await eventually("started", details: { other.standardErrorTail }) {
            world.apns.record.taken >= 1
        }
        try await eventually("accepted once") { try start()["duplicate"] == true }
        let record = world.apns.record
        #expect(record.devices[world.token(0)]?.activities.map(\.event) == [.start])
        #expect(record.taken == 1 && record.violations.isEmpty)
        try await eventually("asked by each leader") { source.questions.count >= 2 }
        await world.apns.stop()
    }

    @Test func `who confirms at another node is not pushed to`() async throws {
        let world = try World()
        let nodes = [try world.gateways.start(1), try world.gateways.start(2)]
        try world.gateways.putCatalog(nodes[0])
        try world.register(at: nodes)
        // Each has a stream at the node where it did not register. The last one confirms nothing.
        let streams = try (0..<Self.devices).map {
            try world.gateways.stream("phone\($0)", from: nil, at: nodes[($0 + 1) % 2])
        }
        for stream in streams { #expect(stream.status == 200) }
        for number in 0..<Self.devices {
            let path = "/v1/apps/\(ClusterGateways.app)/clients/phone\(number)/explain"
            try blockUntil("the leader knows of the stream") {
                try nodes[0].http().request("GET", path, token: world.gateways.backend())[
                    "streams"]?.arrayValue?.count == 1
            }
        }
        try world.change("1", at: nodes[0])
        for (number, stream) in streams.enumerated().dropLast() {
            while let told = try stream.next(), told != ["panda"] {}
            let answer = try world.gateways.acknowledge(
                "phone\(number)", upTo: try #require(stream.cursor), at: nodes[(number + 1) % 2])
            #expect(answer.status == 204, "\(answer.text)")
        }
        // When its time to confirm is over, so is that of the others.
        try await world.expectTaken(1, nodes[0])
        #expect(Array(world.apns.record.devices.keys) == [world.token(Self.devices - 1)])
        for stream in streams { stream.close() }
        await world.apns.stop()
    }
}
