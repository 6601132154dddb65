import GatewayDocuments
import GatewayEngine
import GatewaySigning
import NIOHTTP1

extension GatewayRoutes {
    /// Removes an app, its catalog and its clients.
    func deleteApp(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> RouteResponse {
        let app = try await app(request, context, .operate)
        let removed = engine.catalogs.ruleSet(of: app)
        defer { engine.documents.release(removed, of: app) }
        let removal = try await engine.log.removeApp(app)
        var document = RemovedApp()
        document.app = app
        (document.clients, document.sequence) = (removal.clients, removal.sequence)
        return try RouteResponse(.ok, document: document)
    }
}
