import WidgetModel

/// A running gateway with a catalog, and a generator beside it.
final class Stage {
    /// The app everything belongs to.
    static let app = "com.example.bench"
    private static let requestConnections = 64

    /// The gateway.
    let gateway: GatewayUnderTest
    /// The load.
    let generator: Generator
    /// A token with a backend's scopes.
    let backend: String
    private var eventNumber = 0

    /// Runs `body` with a stage that is taken down afterwards, whatever happens.
    ///
    /// - Parameter launcher: What starts the gateway's program; see ``GatewayUnderTest``.
    static func with<Result>(
        _ settings: BenchSettings, launcher: [String] = [], _ body: (Stage) throws -> Result
    ) throws -> Result {
        let gateway = try GatewayUnderTest(
            program: settings.gateway, cores: settings.serverCores, launcher: launcher)
        defer { gateway.end() }
        try gateway.start()
        return try body(try Stage(gateway))
    }

    private init(_ gateway: GatewayUnderTest) throws {
        self.gateway = gateway
        generator = try Generator(ca: gateway.ca)
        backend = try gateway.token(
            app: Self.app, scope: "catalog:write changes:write clients:write")
        // No collapse window: each change is to be heard of at once.
        let catalog = """
            app: \(Self.app)
            entities: { Thing: { properties: [state] } }
            intents: { One: { parameters: [{ name: thing, type: Thing }] } }
            widgets:
              - kind: thing
                configuration: appIntent
                intent: One
                families: [systemSmall]
                dependsOn: [{ entity: Thing, match: { id: $thing } }]
            """
        let poster = try requester(connections: 1)
        defer { poster.close() }
        poster.send(
            Request.bytes(
                "PUT", "/v1/apps/\(Self.app)/catalog", token: backend, type: "application/yaml",
                body: Array(catalog.utf8)))
        try poster.waitForAnswers()
    }

    /// Kept-alive connections to the gateway.
    func requester(connections: Int = Stage.requestConnections) throws -> Requester {
        try Requester(generator, port: gateway.port, connections: connections)
    }

    // MARK: Requests

    /// The name of client `number`.
    static func client(_ number: Int) -> String { "client-\(number)" }

    /// Registers client `number` with a widget for each of `things`.
    func registration(_ number: Int, things: [String]) -> [UInt8] {
        let document: JSONValue = [
            "platform": "iOS",
            "widgets": .array(
                things.map {
                    [
                        "kind": "thing", "family": "systemSmall",
                        "parameters": ["thing": .string($0)],
                    ]
                }),
        ]
        return Request.bytes(
            "PUT", "/v1/apps/\(Self.app)/clients/\(Self.client(number))", token: backend,
            type: "application/json", body: document.serialized)
    }

    /// Posts a change of each of `things`: a single event, or a batch of several.
    func change(_ things: [String]) -> [UInt8] {
        let events = things.map { thing -> JSONValue in
            eventNumber += 1
            return [
                "specversion": "1.0", "type": "changed", "source": "/bench",
                "id": .string("\(eventNumber)"),
                "data": ["entity": "Thing", "id": .string(thing), "properties": ["state"]],
            ]
        }
        let isBatch = events.count != 1
        return Request.bytes(
            "POST", "/v1/apps/\(Self.app)/changes", token: backend,
            type: "application/cloudevents\(isBatch ? "-batch" : "")+json",
            body: isBatch ? JSONValue.array(events).serialized : events[0].serialized)
    }

    /// Asks for the stream of client `number`.
    static func stream(
        _ number: Int, token: String, after cursor: String?, isHTTP2: Bool
    ) -> [UInt8] {
        Request.stream(
            "/v1/apps/\(app)/clients/\(client(number))/reloads", token: token, after: cursor,
            isHTTP2: isHTTP2)
    }

    // MARK: Clients

    /// Registers `count` clients with the same widgets and returns a token for each.
    func makeClients(_ count: Int, things: [String]) throws -> [String] {
        let requester = try requester()
        defer { requester.close() }
        var number = 0
        try requester.run { [self] in
            guard number < count else { return nil }
            defer { number += 1 }
            return registration(number, things: things)
        }
        return try gateway.clientTokens(
            app: Self.app, clients: (0..<count).map(Self.client))
    }

    /// The gateway as it runs now, with streams of those clients.
    ///
    /// - Parameters:
    ///   - cursors: Where each stream goes on, by client; none to start anew.
    ///   - isHTTP2: Whether streams are HTTP/2 connections.
    func target(
        tokens: [String], thing: String, cursors: [String]? = nil, isHTTP2: Bool = false
    ) -> Target {
        Target(
            port: gateway.port, processes: gateway.processes,
            streamRequest: {
                Self.stream($0, token: tokens[$0], after: cursors?[$0], isHTTP2: isHTTP2)
            },
            changeRequest: { [self] in change([thing]) }, greets: true, isHTTP2: isHTTP2)
    }
}
