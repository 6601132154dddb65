import GatewayDocuments
import GatewayEngine
import GatewaySigning
import NIOHTTP1

/// The routes of apps as a whole.
extension GatewayRoutes {
    /// Removes an app, its catalog and its clients.
    func deleteApp(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> RouteResponse {
        let app = try await app(request, context, .operate)
        let removed = catalogs.ruleSet(of: app)
        defer { documents.release(removed, of: app) }
        let removal = try await changes.removeApp(app)
        var document = RemovedApp()
        document.app = app
        (document.clients, document.sequence) = (removal.clients, removal.sequence)
        return try RouteResponse(.ok, document: document)
    }
}
