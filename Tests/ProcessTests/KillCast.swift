import GatewayTestSupport
import WidgetModel

/// Who takes part in a run of kills, and what they know; it outlives every daemon.
final class KillCast: Sendable {
    static let app = "com.mygame"
    static let characters = (0..<40).map { "hero-\($0)" }

    /// A client's own memory.
    struct Client: Sendable {
        let name: String
        let token: String
        /// What it asked to hold last, and everything it ever asked for.
        var characters: [String]
        var everHeld: Set<String>
        var cursor: String
    }

    let model = TestHTTPMonitor(DeliveryModel())
    /// Clients that hold streams, then those that poll.
    let clients: TestHTTPMonitor<[Client]>
    static let streamCount = 10
    static let pollerCount = 5
    /// Registrations answered 201, by client.
    let registered = TestHTTPMonitor<[String: JSONValue]>([:])
    let backend: String

    /// Puts the catalog and registers the clients.
    init(_ gateway: GatewayProcess, _ generator: inout SeededGenerator) throws {
        backend = try gateway.token(
            app: Self.app, scope: "catalog:write changes:write clients:write")
        let http = gateway.http()
        let put = try http.request(
            "PUT", "/v1/apps/\(Self.app)/catalog", token: backend,
            headers: [("Content-Type", "application/yaml")], body: Self.catalog(variant: 0))
        guard put.status == 201 else { throw WireFault(what: put.text) }
        let names = (0..<(Self.streamCount + Self.pollerCount)).map { "client-\($0)" }
        let tokens = try gateway.clientTokens(app: Self.app, clients: names)
        var made: [Client] = []
        for (name, token) in zip(names, tokens) {
            let characters = Self.choice(&generator)
            let answer = try http.register(
                name, app: Self.app, token: token, Self.document(name, characters))
            guard answer.status == 201, let cursor = answer["cursor"]?.stringValue else {
                throw WireFault(what: answer.text)
            }
            let sequence = try Cursor.sequence(cursor)
            model.update {
                $0.registered(name, characters, at: sequence)
                $0.moved(name, to: sequence)
            }
            made.append(
                Client(
                    name: name, token: token, characters: characters, everHeld: Set(characters),
                    cursor: cursor))
        }
        clients = TestHTTPMonitor(made)
    }

    /// One to four characters.
    static func choice(_ generator: inout SeededGenerator) -> [String] {
        let count = Int.random(in: 1...4, using: &generator)
        return Array(characters.shuffled(using: &generator).prefix(count))
    }

    /// Odd clients configure one widget with a list, even ones a widget for each character.
    static func document(_ client: String, _ characters: [String]) -> JSONValue {
        let isList = (client.utf8.last ?? 0) % 2 == 1
        let values: [JSONValue] =
            isList
            ? [.array(characters.map { .string($0) })] : characters.map { .string($0) }
        return [
            "platform": "iOS", "osVersion": "26.1",
            "widgets": .array(
                values.map { value in
                    [
                        "kind": isList ? "party" : "detail", "family": "systemSmall", "count": 1,
                        "parameters": ["character": value],
                    ]
                }),
        ]
    }

    /// The same rules in every variant: some differ in a comment, some in a kind nobody placed.
    static func catalog(variant: Int) -> String {
        let extra =
            variant % 2 == 0
            ? ""
            : "  - { kind: extra-\(variant), configuration: static, families: [systemSmall] }\n"
        return """
            # variant \(variant)
            app: \(app)
            entities:
              Character: { properties: [health] }
            intents:
              One: { parameters: [{ name: character, type: Character }] }
              Many: { parameters: [{ name: character, type: "[Character]" }] }
            widgets:
              - kind: detail
                configuration: appIntent
                intent: One
                families: [systemSmall]
                dependsOn: [{ entity: Character, match: { id: $character } }]
              - kind: party
                configuration: appIntent
                intent: Many
                families: [systemSmall]
                collapse: 50ms
                dependsOn: [{ entity: Character, match: { id: $character } }]
            \(extra)
            """
    }

    // MARK: What a client does with what it hears

    func client(_ index: Int) -> Client { clients.update { $0[index] } }

    /// Takes a block of a client's stream, as a client does: the notification first, then the id.
    func take(_ block: ServerSentEvent, for index: Int) throws {
        let client = client(index)
        if let data = block.data { try hear(data, client.name, client.everHeld) }
        if let id = block.id { try adopt(id, for: index) }
    }

    /// Polls once from the client's cursor.
    func poll(_ http: TestHTTP, for index: Int) throws {
        let client = client(index)
        let answer = try http.poll(
            client.name, app: Self.app, token: client.token, since: client.cursor)
        for notification in answer.notifications {
            try hear(notification, client.name, client.everHeld)
        }
        try adopt(answer.cursor, for: index)
    }

    func hear(_ notification: String, _ client: String, _ mayName: Set<String>) throws {
        let claims = try claims(of: notification)
        model.update { $0.told(client, claims, mayName: mayName) }
    }

    private func adopt(_ cursor: String, for index: Int) throws {
        let sequence = try Cursor.sequence(cursor)
        let name = clients.update { clients in
            clients[index].cursor = cursor
            return clients[index].name
        }
        model.update { $0.moved(name, to: sequence) }
    }

    /// Registers a client anew with other characters; if no answer comes, nobody knows which of
    /// the two registrations is in force.
    func change(_ http: TestHTTP, _ index: Int, to characters: [String]) throws {
        let client = client(index)
        clients.update {
            $0[index].characters = characters
            $0[index].everHeld.formUnion(characters)
        }
        let (before, after) = (Set(client.characters), Set(characters))
        model.update { $0.unsure(client.name, of: before.subtracting(after).sorted()) }
        let answer = try http.register(
            client.name, app: Self.app, token: client.token,
            Self.document(client.name, characters))
        guard answer.status == 200 else {
            throw WireFault(what: "\(client.name): \(answer.status) \(answer.text)")
        }
        let sequence = try Cursor.sequence(answer["cursor"]?.stringValue)
        model.update { $0.registered(client.name, characters, at: sequence) }
    }
}
