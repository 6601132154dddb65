import GatewayCore
import HTTPTypes
import Hummingbird
import NIOCore
import OpenMetrics
import WidgetModel

/// The admin port's own routes: metrics, health, what runs, and what the dashboard reads.
struct AdminRoutes: Sendable {
    let desk: OverviewDesk
    let system: SystemPage
    let apps: AppsPage
    let live = LiveStreams()

    private var page: MetricsPage { desk.page }

    /// Everything the port has.
    func router() -> Router<AdminContext> {
        let router = Router(context: AdminContext.self)
        addProbes(to: router)
        router.get("/metrics") { request, _ in
            let format = ExpositionFormat(accept: request.headers[values: .accept])
            return Response(
                status: .ok, headers: [.contentType: format.contentType, .vary: "Accept"],
                body: .init(byteBuffer: .init(string: page.text(format))))
        }
        router.get("/version") { _, _ in
            Response(.ok, json: BuildInformation.json)
        }
        router.get("/api/overview") { request, _ in
            let after = request.uri.queryParameters["after"].flatMap { Int64($0) } ?? 0
            return Response(.ok, json: desk.overviewWithPast(after: after))
        }
        router.get("/api/live") { _, _ in try live.answer(desk) }
        router.get("/api/apps") { _, _ in Response(.ok, json: await apps.json()) }
        router.get("/api/system") { _, _ in Response(.ok, json: system.json) }
        router.get("/**") { request, _ in
            guard let file = StaticFiles.file(request.uri.path) else { throw HTTPError(.notFound) }
            return StaticFiles.answer(file, ifNoneMatch: request.headers[values: .ifNoneMatch])
        }
        router.get("/") { request, _ in
            guard let file = StaticFiles.file("/") else { throw HTTPError(.notFound) }
            return StaticFiles.answer(file, ifNoneMatch: request.headers[values: .ifNoneMatch])
        }
        return router
    }

    /// What probes ask: `/livez` says that a restart would help, `/readyz` whether the gateway does
    /// its work now.
    func probes() -> Router<AdminContext> {
        let router = Router(context: AdminContext.self)
        addProbes(to: router)
        return router
    }

    private func addProbes(to router: Router<AdminContext>) {
        router.get("/livez") { _, _ in
            let stuck = desk.verdict.stuck
            return Self.answer(stuck.isEmpty, "live", "stuck", stuck)
        }
        router.get("/readyz") { _, _ in
            let failing = desk.verdict.notReady
            return Self.answer(failing.isEmpty, "ready", "not ready", failing)
        }
    }

    private static func answer(
        _ isWell: Bool, _ well: String, _ unwell: String, _ parts: [Health.Part]
    ) -> Response {
        Response(
            isWell ? .ok : .serviceUnavailable,
            json: [
                "status": .string(isWell ? well : unwell),
                "failing": .array(parts.map { .string($0.rawValue) }),
            ])
    }
}

extension Response {
    /// A JSON answer.
    fileprivate init(_ status: HTTPResponse.Status, json: JSONValue) {
        self.init(
            status: status,
            headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: json.serialized)))
    }
}
