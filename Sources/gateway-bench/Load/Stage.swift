import GatewayTestSupport
import WidgetModel

/// Running gateways with a catalog, and a generator beside them.
final class Stage {
    /// The app that everything belongs to.
    static let app = "com.example.bench"
    private static let requestConnections = 64

    /// The gateways: one, or the nodes of a cluster.
    let gateways: [GatewayProcess]
    let generator: Generator
    /// A token with a backend's scopes.
    let backend: String
    private let clientTokens: (_ clients: [String]) throws -> [String]
    private var eventNumber = 0

    /// The gateway that changes are posted to.
    var gateway: GatewayProcess { gateways[0] }

    /// The CPU time that the gateways have taken so far, in nanoseconds.
    var cpuNanoseconds: Int64 {
        gateways.reduce(0) { $0 + ProcessStats.cpuNanoseconds($1.pid) }
    }

    /// Runs `body` with a stage that is taken down afterwards, whatever happens. `launcher` is a
    /// program with arguments that becomes the gateway, `options` are lines of its configuration.
    static func with<Result>(
        _ settings: BenchSettings, launcher: [String] = [], options: [String] = [],
        _ body: (Stage) throws -> Result
    ) throws -> Result {
        let gateway = try GatewayProcess.measured(
            program: settings.gateway, cores: settings.serverCores, launcher: launcher,
            options: options)
        defer { gateway.kill() }
        try gateway.startMeasured()
        let backend = try gateway.token(
            app: Self.app, scope: "catalog:write changes:write clients:write", ttl: "12h")
        return try body(
            try Stage([gateway], backend: backend) {
                try gateway.clientTokens(app: Self.app, clients: $0, ttl: "12h")
            })
    }

    /// Puts the catalog. The `gateways` run and have one certificate. `backend` is a token with a
    /// backend's scopes; `clientTokens` returns a token for each of these clients.
    init(
        _ gateways: [GatewayProcess], backend: String,
        clientTokens: @escaping (_ clients: [String]) throws -> [String]
    ) throws {
        (self.gateways, self.backend, self.clientTokens) = (gateways, backend, clientTokens)
        generator = try Generator(ca: gateways[0].ca)
        try gateways[0].put(
            "/v1/apps/\(Self.app)/catalog", token: backend, type: "application/yaml",
            Self.catalog(app: Self.app))
    }

    /// Returns a catalog of one kind of widget, which shows one thing.
    static func catalog(app: String) -> String {
        // No collapse window: each change is delivered at once.
        """
        app: \(app)
        entities: { Thing: { properties: [state] } }
        intents: { One: { parameters: [{ name: thing, type: Thing }] } }
        widgets:
          - kind: thing
            configuration: appIntent
            intent: One
            families: [systemSmall]
            dependsOn: [{ entity: Thing, match: { id: $thing } }]
        """
    }

    /// Opens kept-alive connections to the gateway.
    func requester(connections: Int = Stage.requestConnections) throws -> Requester {
        try Requester(generator, port: gateway.port, connections: connections)
    }

    /// Returns the CPU time that the gateways take for `work` and its aftermath, in nanoseconds.
    func cpuNanoseconds(of work: () throws -> Void) throws -> Int64 {
        try generator.run(seconds: 0.2) { false }
        let before = cpuNanoseconds
        try work()
        try generator.run(seconds: 0.2) { false }
        return cpuNanoseconds - before
    }

    // MARK: Requests

    static func path(ofClient number: Int) -> String { "/v1/apps/\(app)/clients/client-\(number)" }

    /// Returns the request that registers client `number` with a widget for each of `things`.
    func registration(_ number: Int, things: [String]) -> [UInt8] {
        registration(number, Self.registration(things: things))
    }

    /// Returns the request that registers client `number` with a document.
    func registration(_ number: Int, _ document: JSONValue) -> [UInt8] {
        Request.bytes(
            "PUT", Self.path(ofClient: number), token: backend, type: "application/json",
            body: document.serialized)
    }

    /// Returns the registration of a client with a widget for each of `things`.
    static func registration(things: [String]) -> JSONValue {
        [
            "platform": "iOS",
            "widgets": .array(
                things.map {
                    [
                        "kind": "thing", "family": "systemSmall",
                        "parameters": ["thing": .string($0)],
                    ]
                }),
        ]
    }

    /// Returns the post of a change of each of `things`: a single event, or a batch of several.
    func change(_ things: [String]) -> [UInt8] {
        let events = things.map { thing -> JSONValue in
            eventNumber += 1
            return Self.event(of: thing, number: eventNumber)
        }
        let isBatch = events.count != 1
        return Request.bytes(
            "POST", "/v1/apps/\(Self.app)/changes", token: backend,
            type: "application/cloudevents\(isBatch ? "-batch" : "")+json",
            body: isBatch ? JSONValue.array(events).serialized : events[0].serialized)
    }

    static func event(of thing: String, number: Int) -> JSONValue {
        [
            "specversion": "1.0", "type": "changed", "source": "/bench",
            "id": .string("\(number)"),
            "data": ["entity": "Thing", "id": .string(thing), "properties": ["state"]],
        ]
    }

    // MARK: Clients

    /// Registers `count` clients, whose widgets show their `things`, and returns a token for each.
    func makeClients(
        _ count: Int, things: (_ client: Int) -> [String] = { _ in ["0"] }
    ) throws -> [String] {
        let requester = try requester()
        var number = 0
        let requests = (0..<count).map { registration($0, things: things($0)) }
        try requester.run {
            guard number < count else { return nil }
            defer { number += 1 }
            return requests[number]
        }
        return try clientTokens((0..<count).map { "client-\($0)" })
    }
}

extension GatewayProcess {
    /// Puts a document. Returns the answer, a JSON object. Throws ``BenchFailure`` unless its
    /// status is 2xx.
    @discardableResult
    func put(
        _ path: String, token: String, type: String = "application/json", _ document: String
    ) throws -> TestHTTPAnswer {
        let answer = try http().request(
            "PUT", path, token: token, headers: [("Content-Type", type)], body: document)
        guard (200..<300).contains(answer.status) else {
            throw BenchFailure("PUT \(path) returned \(answer.status): \(answer.text)")
        }
        return answer
    }
}
