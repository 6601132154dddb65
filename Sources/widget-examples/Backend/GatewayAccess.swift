import Foundation
import TimelineClient
import TimelineClientHTTP
import WidgetModel

/// How the game's backend uses the gateway, with its own token: declares the widgets, posts changes,
/// and gets tokens for its clients.
struct GatewayAccess: Sendable {
    /// The app's bundle id.
    static let app = "com.mygame"

    private let service: GatewayService
    private let url: String
    private let ca: String
    /// Event ids of one run never meet those of another.
    private let source = "/widget-examples/\(UUID().uuidString)"

    /// - Throws: `ConnectionError` when `url` is no https origin.
    init(url: String, ca: String, token: String) throws {
        self.url = url
        self.ca = ca
        service = GatewayService(
            connection: try Self.connection(url: url, ca: ca, token: token), app: Self.app)
    }

    /// Declares the widgets, and what each depends on.
    ///
    /// - Throws: `GatewayFailure`; so do the others below.
    func putCatalog(_ yaml: [UInt8]) async throws {
        _ = try await service.document(
            "PUT", "\(service.base)/catalog", body: yaml, contentType: "application/yaml")
    }

    /// Announces a change; returns when the gateway has it on disk.
    func post(_ change: Change) async throws {
        let event = CloudEvent(source: source, id: UUID().uuidString, change: change)
        _ = try await service.json(
            "POST", "\(service.base)/changes", body: event.json,
            contentType: "application/cloudevents+json")
    }

    /// A connection for a client, whose token says whose account it is.
    func connection(client: String, account: String) async throws -> CurlConnection {
        let answer = try await service.json(
            "POST", "\(service.base)/tokens",
            body: [
                "sub": .string(client), "ttl": "1h", "attributes": ["account": .string(account)],
            ])
        guard let token = answer.value.objectValue?["token"]?.stringValue else {
            throw GatewayFailure.unreadable("the answer has no token")
        }
        return try Self.connection(url: url, ca: ca, token: token)
    }

    /// The names of what a client recommends for a kind, as the gateway has them.
    func recommendations(ofKind kind: String, by client: String) async throws -> [String] {
        let answer = try await service.json("GET", service.base(ofClient: client))
        let sets = answer.value.objectValue?["recommendations"]?.arrayValue ?? []
        let set = sets.first { $0.objectValue?["kind"]?.stringValue == kind }
        return (set?.objectValue?["items"]?.arrayValue ?? [])
            .compactMap { $0.objectValue?["description"]?.stringValue }
    }

    private static func connection(url: String, ca: String, token: String) throws -> CurlConnection
    {
        try CurlConnection(
            CurlConnection.Configuration(gateway: url, caFile: ca, bearerToken: { token }))
    }
}
