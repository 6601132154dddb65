import WidgetModel

/// A running gateway with what attackers need, and a bystander's app that has nothing to do with them.
final class ComplexityStage {
    /// The bystander's app.
    static let bystander = "com.example.bystander"
    /// The attackers' app.
    static let app = "com.example.attacker"
    /// Another of theirs, whose catalogs are replaced.
    static let otherApp = "com.example.replaced"
    /// Clients with the largest registration, which a page of the list holds.
    static let clients = 60
    /// Rates by which no request is refused: a 429 would hide the work.
    private static let options = Dictionary(
        uniqueKeysWithValues: ["address", "app", "client", "refusedTokens"].map {
            ("rates.\($0)", "1000000/1s burst 1000000")
        })

    /// The gateway.
    let gateway: GatewayUnderTest
    /// The attackers' connections.
    let generator: Generator
    /// A token with every scope of a backend and of an operator, of the attackers' app.
    let token: String
    /// The same of their other app.
    let otherToken: String
    /// A token of an operator of the whole gateway.
    let operatorToken: String
    /// A token of each of the attackers' clients.
    let clientTokens: [String]
    /// The cursor that the first client was answered with.
    let cursor: String
    /// The sequence of a change of theirs that raises nearly the most keys.
    let sequence: Int64
    private let bystanderToken: String

    /// Runs `body` with a stage that is taken down afterwards, whatever happens.
    static func with<Result>(
        program: String, cores: [Int]?, _ body: (ComplexityStage) throws -> Result
    ) throws -> Result {
        let gateway = try GatewayUnderTest(program: program, cores: cores)
        defer { gateway.end() }
        // Makes certificates, without which it would take no options.
        try gateway.start()
        try gateway.stop()
        try gateway.start(options: options)
        return try body(try ComplexityStage(gateway))
    }

    private init(_ gateway: GatewayUnderTest) throws {
        self.gateway = gateway
        generator = try Generator(ca: gateway.ca)
        let scopes = "catalog:write changes:write clients:write tokens:issue operator"
        token = try gateway.token(app: Self.app, scope: scopes)
        otherToken = try gateway.token(app: Self.otherApp, scope: scopes)
        bystanderToken = try gateway.token(app: Self.bystander, scope: scopes)
        operatorToken = try gateway.token(app: "*", scope: "operator")
        clientTokens = try gateway.clientTokens(
            app: Self.app, clients: (0..<Self.clients).map(Self.client))
        let setUp = SetUp(generator, port: gateway.port)
        let registration = AttackRequest(
            Route("PUT", ""), reaching: [],
            bytes: AttackDocuments.registration())
        func put(
            _ app: String, _ token: String, _ what: String, _ body: [UInt8], isYAML: Bool = false
        ) throws -> [UInt8] {
            try setUp.answer(
                Request.bytes(
                    "PUT", "/v1/apps/\(app)/\(what)", token: token,
                    type: isYAML ? "application/yaml" : "application/json", body: body))
        }
        let catalog = """
            app: \(Self.bystander)
            entities: { Thing: { properties: [state] } }
            intents: { One: { parameters: [{ name: thing, type: Thing }] } }
            widgets:
              - kind: thing
                configuration: appIntent
                intent: One
                families: [systemSmall]
                dependsOn: [{ entity: Thing, match: { id: $thing } }]
            """
        _ = try put(Self.bystander, bystanderToken, "catalog", Array(catalog.utf8), isYAML: true)
        let widget: JSONValue = [
            "kind": "thing", "family": "systemSmall", "parameters": ["thing": "0"],
        ]
        let own: JSONValue = ["platform": "iOS", "widgets": [widget]]
        _ = try put(Self.bystander, bystanderToken, "clients/bystander", own.serialized)
        _ = try put(Self.app, token, "catalog", AttackDocuments.catalog(app: Self.app))
        _ = try put(
            Self.otherApp, otherToken, "catalog",
            AttackDocuments.mostRules(app: Self.otherApp, variant: "First"), isYAML: true)
        var cursor: String?
        for number in 0..<Self.clients {
            let answer = try put(
                Self.app, token, "clients/\(Self.client(number))", registration.bytes(number: 0))
            if number == 0 {
                cursor = try? JSONValue(parsing: answer).objectValue?["cursor"]?.stringValue
            }
        }
        let change = AttackRequest(
            Route("POST", ""), reaching: [], bytes: AttackDocuments.wideChange)
        let taken = try setUp.answer(
            Request.bytes(
                "POST", "/v1/apps/\(Self.app)/changes", token: token,
                type: "application/cloudevents+json", body: change.bytes(number: 99_999_999)))
        let sequence = try? JSONValue(parsing: taken).objectValue?["sequence"]?.integerValue
        guard let cursor, let sequence else {
            throw BenchFailure("a registration or a change was answered without its place")
        }
        (self.cursor, self.sequence) = (cursor, sequence)
    }

    /// The name of client `number`.
    static func client(_ number: Int) -> String { "client-\(number)" }

    /// What the gateway answers to a GET.
    func document(_ path: String) throws -> JSONValue {
        let setUp = SetUp(generator, port: gateway.port)
        let body = try setUp.answer(Request.bytes("GET", path, token: token))
        do {
            return try JSONValue(parsing: body)
        } catch {
            throw BenchFailure("\(path) is not JSON: \(error)")
        }
    }

    /// The bystander, who posts a change of one thing of one app.
    func startBystander() throws -> Bystander {
        let token = bystanderToken
        return try Bystander(ca: gateway.ca, port: gateway.port) { number in
            let event: JSONValue = [
                "specversion": "1.0", "type": "changed", "source": "/bystander",
                "id": .string("\(number)"),
                "data": ["entity": "Thing", "id": "0", "properties": ["state"]],
            ]
            return Request.bytes(
                "POST", "/v1/apps/\(Self.bystander)/changes", token: token,
                type: "application/cloudevents+json", body: event.serialized)
        }
    }

    /// The turns of the gateway's threads so far; `nil` where it does not tell.
    func turns() throws -> TurnHistogram? { TurnHistogram(metricsPage: try gateway.metricsPage()) }
}

/// Asks one request after the other and waits for each answer.
private final class SetUp: ConnectionUser {
    private static let patienceSeconds = 60.0

    private let generator: Generator
    private let port: UInt16
    private var request: [UInt8] = []
    private var outcome: Result<[UInt8], BenchFailure>?

    init(_ generator: Generator, port: UInt16) { (self.generator, self.port) = (generator, port) }

    /// The body of the answer to `request`.
    ///
    /// - Throws: ``BenchFailure`` where it is no 2xx.
    func answer(_ request: [UInt8]) throws -> [UInt8] {
        self.request = request
        outcome = nil
        let connection = try generator.connect(
            .init(port: port, number: AttackLoad.firstNumber), user: self)
        try generator.run(seconds: Self.patienceSeconds) { outcome != nil }
        generator.close(connection)
        guard let outcome else { throw BenchFailure("no answer while the stage was set up") }
        return try outcome.get()
    }

    func opened(_ connection: ClientConnection) { generator.send(request, on: connection) }

    func answered(_ connection: ClientConnection, status: Int, body: [UInt8]) {
        let text = String(decoding: body.prefix(500), as: UTF8.self)
        outcome =
            status / 100 == 2
            ? .success(body) : .failure(BenchFailure("refused with \(status): \(text)"))
    }

    func closed(_ connection: ClientConnection, reason: String) {
        outcome = outcome ?? .failure(BenchFailure(reason))
    }
}
