import GatewayTestSupport
import WidgetModel

/// A gateway with a small catalog, a backend and clients that follow characters.
struct GameFixture {
    static let app = "com.mygame"

    let gateway: any TestGateway
    let backend: String

    /// A client with a registration of its own.
    struct Client {
        let name: String
        let token: String
        let cursor: String
    }

    /// A fixture for another gateway, which accepts the tokens of the first.
    init(continuing other: GameFixture, on gateway: any TestGateway) {
        self.gateway = gateway
        backend = other.backend
    }

    init(_ gateway: any TestGateway) throws {
        self.gateway = gateway
        backend = try gateway.token(
            app: Self.app, scope: "catalog:write changes:write clients:write operator")
        guard try put(Self.catalog()) == 201 else { throw TestFailure("the catalog is refused") }
    }

    /// A catalog of one kind of widget, which shows a character.
    static func catalog(
        rule: String = "entity: Character, match: { id: $character }", collapse: String = "0"
    ) -> String {
        """
        app: \(app)
        entities: { Character: { properties: [health] } }
        intents: { One: { parameters: [{ name: character, type: Character }] } }
        widgets:
          - kind: detail
            configuration: appIntent
            intent: One
            families: [systemSmall]
            collapse: \(collapse)
            dependsOn: [{ \(rule) }]
        """
    }

    /// Puts a catalog in force; returns the status.
    func put(_ catalog: String) throws -> Int {
        try gateway.http().request(
            "PUT", "/v1/apps/\(Self.app)/catalog", token: backend,
            headers: [("Content-Type", "application/yaml")], body: catalog
        ).status
    }

    /// Registers a client with a widget for each of `characters`.
    func client(_ name: String, _ characters: [String]) throws -> Client {
        let token = try gateway.token(app: Self.app, scope: "client", sub: name)
        let answer = try gateway.http().register(
            name, app: Self.app, token: token,
            registration(showing: characters))
        guard answer.status == 201, let cursor = answer["cursor"]?.stringValue else {
            throw TestFailure(answer.text)
        }
        return Client(name: name, token: token, cursor: cursor)
    }

    /// Posts one change of each of `characters`; returns the last one's sequence.
    @discardableResult
    func change(_ http: TestHTTP, _ characters: [String], run: String) throws -> UInt64 {
        let events = characters.enumerated().map { place, character in
            event(source: run, id: "\(place)", entity: "Character", key: character)
        }
        let answer = try http.post(events, app: Self.app, token: backend)
        guard answer.status == 202, let sequence = answer["sequence"]?.integerValue else {
            throw TestFailure(answer.text)
        }
        return UInt64(sequence)
    }

    func stream(
        _ client: Client, from cursor: String? = nil, version: TestHTTPVersion = .one,
        receiveBufferBytes: Int? = nil, cutAtByte: Int? = nil
    ) -> TestHTTPStream {
        gateway.stream(
            app: Self.app, client: client.name, token: client.token,
            from: cursor ?? client.cursor, version: version,
            receiveBufferBytes: receiveBufferBytes, cutAtByte: cutAtByte)
    }

    /// Polls once; returns the stale content as text, and the new cursor.
    func poll(_ client: Client, since cursor: String) throws -> (stale: [String], cursor: String) {
        let answer = try gateway.http().poll(
            client.name, app: Self.app, token: client.token, since: cursor)
        let stale = try answer.notifications.flatMap { try names(in: claims(of: $0)) }
        return (stale, answer.cursor)
    }
}

extension TestHTTPStream {
    /// Reads until an id covers the change `sequence`; returns that id.
    func cursor(covering sequence: UInt64) throws -> String {
        while true {
            guard case .block(let block) = next() else {
                throw TestFailure("the stream ended before \(sequence)")
            }
            if let id = block.id, try Cursor.sequence(id) >= sequence { return id }
        }
    }
}

/// Returns what a notification names: kinds with their parameters, sets, or `everything`.
func names(in notification: ReloadNotification) -> [String] {
    var names = notification.reload.map { entry in
        entry.parameters.reduce(entry.kind) { $0 + " \($1.name)=\($1.value ?? "unset")" }
    }
    names += notification.recommendations.map { "recommendations \($0)" }
    names += (notification.relevance + notification.controls).map { "unexpected \($0)" }
    if notification.all { names.append("everything") }
    return names
}
