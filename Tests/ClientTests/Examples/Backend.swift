import Foundation
import GatewayTestSupport
import Testing
import TimelineRuntime
import WidgetModel

/// The server of an app, which tells a gateway what changes.
struct Backend {
    var gateway: GatewayProcess
    let app: String
    private let token: String

    init(_ gateway: GatewayProcess, app: String, catalog: String) throws {
        self.gateway = gateway
        self.app = app
        token = try gateway.token(app: app, scope: "catalog:write changes:write clients:write")
        let put = try gateway.http().request(
            "PUT", "/v1/apps/\(app)/catalog", token: token,
            headers: [("Content-Type", "application/yaml")], body: catalog)
        try #require(put.status == 201, "\(put.text)")
    }

    func post(_ change: Change) throws {
        let event = CloudEvent(source: "backend", id: UUID().uuidString, change: change)
        let answer = try gateway.http().post([event.json], app: app, token: token)
        try #require(answer.status == 202, "\(answer.text)")
    }

    /// Returns the registration that the gateway has of a client; `nil` when it has none.
    func registration(of client: String) throws -> JSONObject? {
        let answer = try gateway.http().request(
            "GET", "/v1/apps/\(app)/clients/\(client)", token: token)
        return answer.status == 200 ? answer.json?.objectValue : nil
    }

    /// Returns the kinds of a client's registered widgets, sorted.
    func registeredKinds(of client: String) throws -> [String] {
        try (registration(of: client)?["widgets"]?.arrayValue ?? [])
            .compactMap { $0.objectValue?["kind"]?.stringValue }.sorted()
    }

    /// Returns a connection with a new token of a client.
    func connection(of client: String, attributes: [String] = []) throws -> CurlConnection {
        let token = try gateway.token(
            app: app, scope: "client", sub: client, attributes: attributes)
        return try CurlConnection(
            .init(gateway: gateway.url, caFile: gateway.ca, bearerToken: { token }))
    }
}
