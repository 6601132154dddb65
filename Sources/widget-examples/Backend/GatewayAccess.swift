import Foundation
import TimelineRuntime
import WidgetModel

/// The game backend's access to the gateway, with its own token: declares the widgets, posts
/// changes, and requests tokens for its clients.
struct GatewayAccess: Sendable {
    /// The app's bundle id.
    static let app = "com.mygame"

    private let service: GatewayService
    private let url: String
    private let ca: String
    /// The source of the events, unique for each run, so that event ids of different runs do not
    /// collide.
    private let source = "/widget-examples/\(UUID().uuidString)"

    /// - Throws: `ConnectionError` when `url` is not an https origin.
    init(url: String, ca: String, token: String) throws {
        self.url = url
        self.ca = ca
        service = GatewayService(
            connection: try Self.connection(url: url, ca: ca, token: token), app: Self.app)
    }

    /// Declares the widgets and their dependencies. Throws `GatewayFailure`, like the methods
    /// below.
    func putCatalog(_ yaml: [UInt8]) async throws {
        _ = try await service.document(
            "PUT", "\(service.base)/catalog", body: yaml, contentType: "application/yaml")
    }

    /// Announces a change; returns when the gateway has committed it.
    func post(_ change: Change) async throws {
        let event = CloudEvent(source: source, id: UUID().uuidString, change: change)
        _ = try await service.json(
            "POST", "\(service.base)/changes", body: event.json,
            contentType: "application/cloudevents+json")
    }

    /// Returns a connection for a client, with a token for an account.
    func connection(client: String, account: String) async throws -> CurlConnection {
        let answer = try await service.json(
            "POST", "\(service.base)/tokens",
            body: [
                "sub": .string(client), "ttl": "1h", "attributes": ["account": .string(account)],
            ])
        guard let token = answer.value.objectValue?["token"]?.stringValue else {
            throw GatewayFailure.unreadable("the response has no token")
        }
        return try Self.connection(url: url, ca: ca, token: token)
    }

    /// Returns the names of a client's recommendations for a kind, as stored by the gateway.
    func recommendations(ofKind kind: String, by client: String) async throws -> [String] {
        let answer = try await service.json("GET", service.base(ofClient: client))
        let sets = answer.value.objectValue?["recommendations"]?.arrayValue ?? []
        let set = sets.first { $0.objectValue?["kind"]?.stringValue == kind }
        return (set?.objectValue?["items"]?.arrayValue ?? [])
            .compactMap { $0.objectValue?["description"]?.stringValue }
    }

    /// Returns the types of a client's Live Activities, as stored by the gateway.
    func activities(of client: String) async throws -> [String] {
        let answer = try await service.json("GET", service.base(ofClient: client))
        return (answer.value.objectValue?["activities"]?.arrayValue ?? [])
            .compactMap { $0.objectValue?["type"]?.stringValue }
    }

    /// Removes a client, if it is there.
    func remove(client: String) async {
        _ = try? await service.json("DELETE", service.base(ofClient: client))
    }

    private static func connection(url: String, ca: String, token: String) throws -> CurlConnection
    {
        try CurlConnection(
            CurlConnection.Configuration(gateway: url, caFile: ca, bearerToken: { token }))
    }
}
