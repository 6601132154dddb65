import GatewayCore
import GatewayDocuments
import GatewayTelemetry
import NIOCore
import NIOHTTP1
import WidgetModel

/// The admin port's own routes: metrics, health, version, and the data of the dashboard.
package struct AdminRoutes: Sendable {
    let sampler: OverviewSampler
    let system: SystemPage
    let apps: AppsPage
    let live = LiveStreams()

    private var page: MetricsPage { sampler.page }

    /// A method that responds to the requests of a route.
    typealias Handler = @Sendable (AdminRoutes) -> GatewayRoute.Handler

    /// The routes of probes: `/livez` fails when a restart would help, `/readyz` while the gateway
    /// cannot do its work.
    static let probes: [(path: String, handler: Handler)] = [
        ("/livez", getLiveness), ("/readyz", getReadiness),
    ]

    /// The routes for operators that the TLS port lacks.
    static let pages: [(path: String, handler: Handler)] = [
        ("/metrics", getMetrics), ("/version", getVersion), ("/api/overview", getOverview),
        ("/api/live", getLive), ("/api/apps", getApps), ("/api/system", getSystem),
    ]

    /// Returns the route table of the admin port, including its OpenAPI document.
    ///
    /// - Parameters:
    ///   - shared: The routes of the TLS port that the admin port also has.
    ///   - isLoopback: Whether only this machine can reach the port.
    ///   - limits: The limits stated in the document.
    package func table(beside shared: RouteTable, isLoopback: Bool, limits: Limits) -> RouteTable {
        let files = StaticFiles.files.map { path, file in
            GatewayRoute(.GET, path) { _, _ in StaticFiles.answer(file) }
        }
        let document = GatewayRoute.document(
            of: .admin(isLoopback: isLoopback), limits: limits)
        return RouteTable(
            routes(Self.probes + Self.pages) + files + shared.routes + [document],
            limits: shared.limits, tracing: shared.tracing)
    }

    /// The table of a port for probes only.
    package var probeTable: RouteTable { RouteTable(routes(Self.probes)) }

    private func routes(_ all: [(path: String, handler: Handler)]) -> [GatewayRoute] {
        all.map { GatewayRoute(.GET, $0.path, $0.handler(self)) }
    }

    // MARK: Handlers

    private func getLiveness(_: GatewayRequest, _: GatewayContext) async throws -> RouteResponse {
        try Self.answer(failing: sampler.verdict.stuck, status: "stuck", otherwise: "live")
    }

    private func getReadiness(_: GatewayRequest, _: GatewayContext) async throws -> RouteResponse {
        try Self.answer(failing: sampler.verdict.notReady, status: "not ready", otherwise: "ready")
    }

    private func getMetrics(
        _ request: GatewayRequest, _: GatewayContext
    ) async throws -> RouteResponse {
        let format = ExpositionFormat(accept: request.header(FieldName.accept).map { [$0] } ?? [])
        return RouteResponse(
            .ok,
            headers: [FieldName.contentType: format.contentType, FieldName.vary: "Accept"],
            body: ByteBuffer(string: await page.text(format)))
    }

    private func getVersion(_: GatewayRequest, _: GatewayContext) async throws -> RouteResponse {
        try Self.answer(BuildInformation.document)
    }

    private func getOverview(
        _ request: GatewayRequest, _: GatewayContext
    ) async throws -> RouteResponse {
        let after = try request.queryValue("after").flatMap { Int64($0) } ?? 0
        return try Self.answer(sampler.overviewWithPast(after: after))
    }

    private func getLive(_: GatewayRequest, _: GatewayContext) async throws -> RouteResponse {
        try live.answer(sampler)
    }

    private func getApps(_: GatewayRequest, _: GatewayContext) async throws -> RouteResponse {
        try Self.answer(await apps.document())
    }

    private func getSystem(_: GatewayRequest, _: GatewayContext) async throws -> RouteResponse {
        try Self.answer(system.document)
    }

    private static func answer(
        failing parts: [Health.Part], status: String, otherwise: String
    ) throws -> RouteResponse {
        try RouteResponse(
            parts.isEmpty ? .ok : .serviceUnavailable,
            document: HealthStatus(
                status: parts.isEmpty ? otherwise : status, failing: parts.map(\.rawValue)),
            headers: [FieldName.cacheControl: "no-store"])
    }

    private static func answer(_ document: some Encodable) throws -> RouteResponse {
        try RouteResponse(.ok, document: document, headers: [FieldName.cacheControl: "no-store"])
    }
}
