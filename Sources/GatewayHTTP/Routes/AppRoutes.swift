import GatewayEngine
import GatewaySigning
import NIOHTTP1
import WidgetModel

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
        return RouteResponse(
            .ok,
            json: [
                "app": .string(app), "clients": .integer(Int64(removal.clients)),
                "sequence": .integer(Int64(clamping: removal.sequence)),
            ])
    }
}
