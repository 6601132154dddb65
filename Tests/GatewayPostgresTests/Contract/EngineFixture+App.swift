import GatewayCore
import WidgetModel

@testable import GatewayEngine

/// An app with one kind of widget, which depends on the hero that its client names.
extension EngineFixture {
    static let app = "com.game"

    static func key(_ client: String) -> ClientKey { ClientKey(app: app, client: client) }

    @discardableResult
    func put(
        _ kinds: [String], _ precondition: Precondition = .none, app: String = app
    ) async throws -> CatalogOutcome {
        let widgets = kinds.map {
            """
            { kind: \($0), configuration: static, families: [systemSmall],
              dependsOn: [{ entity: Hero, match: { id: $client.hero } }] }
            """
        }
        let body = """
            app: \(app)
            entities: { Hero: { properties: [health] } }
            widgets: [\(widgets.joined(separator: ", "))]
            """
        let catalog = try Catalog(JSONValue(yaml: body), app: app, limits: Limits())
        return try await changes.putCatalog(
            catalog, contentType: "application/yaml", body: Array(body.utf8), precondition)
    }

    static func event(_ id: String, health: String = "1") -> CloudEvent {
        CloudEvent(
            source: "test", id: id,
            change: Change(entity: "Hero", id: "panda", attributes: ["health": [health]]))
    }

    func register(
        _ client: String, hero: String = "panda", app: String = app
    ) async throws -> ClientDirectory.RegistrationOutcome {
        try await clients.register(
            ClientKey(app: app, client: client),
            .document([
                "platform": "iOS", "attributes": ["hero": .string(hero)],
                "widgets": [["kind": "hero", "family": "systemSmall"]],
            ]), by: .backend)
    }

    /// Returns once every event loop has applied the log up to a sequence.
    func reached(_ sequence: UInt64) async throws {
        for loop in loops.all { try await loop.reached(sequence) }
    }
}
