import GatewayTestSupport
import WidgetModel

/// A running gateway with what attackers need, and a bystander's app that has nothing to do with them.
final class ComplexityStage {
    static let bystander = "com.example.bystander"
    static let app = "com.example.attacker"
    /// Another of theirs, whose catalogs are replaced.
    static let otherApp = "com.example.replaced"
    /// Clients with the largest registration, which a page of the list holds.
    static let clients = 60
    /// Rates that refuse no request: a 429 would hide the work.
    private static let rates =
        "rates: { "
        + ["address", "app", "client", "refusedTokens"]
        .map { "\($0): 1000000/1s burst 1000000" }.joined(separator: ", ") + " }"

    let gateway: GatewayProcess
    /// The attackers' connections.
    let generator: Generator
    /// A token with every scope of a backend and of an operator, of the attackers' app.
    let token: String
    /// The same of their other app.
    let otherToken: String
    /// A token of an operator of the whole gateway.
    let operatorToken: String
    let clientTokens: [String]
    /// The cursor of the first client's registration.
    let cursor: String
    /// The sequence of a change of theirs that raises nearly the most keys.
    let sequence: Int64
    private let bystanderToken: String

    /// Runs `body` with a stage that is taken down afterwards, whatever happens.
    static func with<Result>(
        program: String, cores: [Int]?, _ body: (ComplexityStage) throws -> Result
    ) throws -> Result {
        let gateway = try GatewayProcess.measured(
            program: program, cores: cores, options: [rates])
        defer { gateway.kill() }
        try gateway.startMeasured()
        return try body(try ComplexityStage(gateway))
    }

    private init(_ gateway: GatewayProcess) throws {
        self.gateway = gateway
        generator = try Generator(ca: gateway.ca)
        let scopes = "catalog:write changes:write clients:write tokens:issue operator"
        let (token, otherToken, bystanderToken) = (
            try gateway.token(app: Self.app, scope: scopes, ttl: "12h"),
            try gateway.token(app: Self.otherApp, scope: scopes, ttl: "12h"),
            try gateway.token(app: Self.bystander, scope: scopes, ttl: "12h")
        )
        (self.token, self.otherToken, self.bystanderToken) = (token, otherToken, bystanderToken)
        operatorToken = try gateway.token(app: "*", scope: "operator", ttl: "12h")
        clientTokens = try gateway.clientTokens(
            app: Self.app, clients: (0..<Self.clients).map(Self.client), ttl: "12h")
        func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
        try gateway.put(
            "/v1/apps/\(Self.bystander)/catalog", token: bystanderToken, type: "application/yaml",
            Stage.catalog(app: Self.bystander))
        try gateway.put(
            "/v1/apps/\(Self.bystander)/clients/bystander", token: bystanderToken,
            Stage.registration(things: ["0"]).text)
        try gateway.put(
            "/v1/apps/\(Self.app)/catalog", token: token,
            text(AttackDocuments.catalog(app: Self.app)))
        try gateway.put(
            "/v1/apps/\(Self.otherApp)/catalog", token: otherToken, type: "application/yaml",
            text(AttackDocuments.mostRules(app: Self.otherApp, variant: "First")))
        let registration = AttackRequest(
            Route("PUT", ""), reaching: [], bytes: AttackDocuments.registration())
        let answers = try (0..<Self.clients).map { number in
            try gateway.put(
                "/v1/apps/\(Self.app)/clients/\(Self.client(number))", token: token,
                text(registration.bytes(number: 0)))
        }
        let change = AttackRequest(
            Route("POST", ""), reaching: [], bytes: AttackDocuments.wideChange)
        let answer = try gateway.http().request(
            "POST", "/v1/apps/\(Self.app)/changes", token: token,
            headers: [("Content-Type", "application/cloudevents+json")],
            body: text(change.bytes(number: 99_999_999)))
        guard let cursor = answers.first?["cursor"]?.stringValue,
            let sequence = answer["sequence"]?.integerValue
        else { throw BenchFailure("the response to a registration or change has no position") }
        (self.cursor, self.sequence) = (cursor, sequence)
    }

    static func client(_ number: Int) -> String { "client-\(number)" }

    /// Starts the bystander, who posts a change of one thing of one app.
    func startBystander() throws -> Bystander {
        let (token, pid) = (bystanderToken, gateway.pid)
        return try Bystander(
            ca: gateway.ca, port: gateway.port, cpu: { ProcessStats.cpuNanoseconds(pid) }
        ) { number in
            Request.bytes(
                "POST", "/v1/apps/\(Self.bystander)/changes", token: token,
                type: "application/cloudevents+json",
                body: Stage.event(of: "0", number: number).serialized)
        }
    }

    /// Reads the turns of the gateway's threads; `nil` where its metrics page lacks them.
    func turns() throws -> TurnHistogram? { TurnHistogram(try gateway.metrics()) }
}
