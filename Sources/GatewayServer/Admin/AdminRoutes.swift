import GatewayCore
import GatewaySigning
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

    /// Everything the port has of its own, the document included.
    ///
    /// - Parameters:
    ///   - shared: The routes of the TLS port that it has too.
    ///   - isLoopback: Whether only this machine can reach it.
    func table(beside shared: RouteTable, isLoopback: Bool) -> AdminTable {
        let operation = APIDocument.operation(for: .scopes([.operate]))
        let described = probeRoutes + pageRoutes + fileRoutes(isLoopback: isLoopback)
        let document = APIDocument(
            described.map(\.described) + [AdminRoute.document(operation, []).described]
                + shared.routes.map(\.described),
            of: .admin(isLoopback: isLoopback))
        return AdminTable(described + [.document(operation, document.bytes)])
    }

    /// What a port of probes alone has.
    var probes: AdminTable { AdminTable(probeRoutes) }

    /// What probes ask: `/livez` says that a restart would help, `/readyz` whether the gateway does
    /// its work now.
    private var probeRoutes: [AdminRoute] {
        [
            AdminRoute(
                "/livez",
                APIOperation(
                    "getLiveness", "Ask whether a restart would help", for: .anyone,
                    answers: [
                        APIAnswer(200, "It would not.", .json(.probe("live"))),
                        APIAnswer(503, "Something is stuck.", .json(.probe("stuck"))),
                    ])
            ) { _ in
                let stuck = desk.verdict.stuck
                return Self.answer(stuck.isEmpty, "live", "stuck", stuck)
            },
            AdminRoute(
                "/readyz",
                APIOperation(
                    "getReadiness", "Ask whether the gateway does its work now", for: .anyone,
                    answers: [
                        APIAnswer(200, "It does.", .json(.probe("ready"))),
                        APIAnswer(503, "Something fails.", .json(.probe("not ready"))),
                    ])
            ) { _ in
                let failing = desk.verdict.notReady
                return Self.answer(failing.isEmpty, "ready", "not ready", failing)
            },
        ]
    }

    private var pageRoutes: [AdminRoute] {
        func page(
            _ path: String, _ id: String, _ summary: String, _ schema: Schema,
            _ parameters: [APIParameter] = [],
            _ json: @escaping @Sendable (Request) async -> JSONValue
        ) -> AdminRoute {
            let operation = APIOperation(
                id, summary, for: .scopes([.operate]), parameters,
                answers: [APIAnswer(200, "As of now.", .json(schema))])
            return AdminRoute(path, operation) { Response(.ok, json: await json($0)) }
        }
        return [
            metricsRoute,
            page("/version", "getVersion", "Ask what runs", .version) { _ in
                BuildInformation.json
            },
            page(
                "/api/overview", "getOverview", "Ask how the gateway does, and did",
                .overviewWithPast,
                [
                    .query(
                        "after", .integer(0...),
                        "Milliseconds since 1970: of the past only what came later.")
                ]
            ) { request in
                let after = request.uri.queryParameters["after"].flatMap { Int64($0) } ?? 0
                return desk.overviewWithPast(after: after)
            },
            liveRoute,
            page("/api/apps", "getApps", "Ask how apps and kinds do", .apps) { _ in
                await apps.json()
            },
            page("/api/system", "getSystem", "Ask about the gateway itself", .system) { _ in
                system.json
            },
        ]
    }

    private var metricsRoute: AdminRoute {
        let operation = APIOperation(
            "getMetrics", "Read the metrics",
            "In the format that `Accept` prefers; Prometheus text where that is unclear.",
            for: .scopes([.operate]),
            answers: [
                APIAnswer(
                    200, "Prometheus text 0.0.4, or OpenMetrics 1.0.0.",
                    ["text/plain": .text, "application/openmetrics-text": .text],
                    headers: ["Vary": "`Accept`"])
            ])
        return AdminRoute("/metrics", operation) { request in
            let format = ExpositionFormat(accept: request.headers[values: .accept])
            return Response(
                status: .ok, headers: [.contentType: format.contentType, .vary: "Accept"],
                body: .init(byteBuffer: .init(string: await page.text(format))))
        }
    }

    private var liveRoute: AdminRoute {
        let operation = APIOperation(
            "getLive", "Be told each second how the gateway does",
            "An event stream: the data of each event `overview` is that of `/api/overview` without "
                + "the past.", for: .scopes([.operate]),
            answers: [
                APIAnswer(
                    200, "A stream that stays open.", ["text/event-stream": .text],
                    headers: [FieldName.cacheControl: "`no-store, no-transform`"])
            ], refusals: [.unavailable])
        return AdminRoute("/api/live", operation) { _ in try live.answer(desk) }
    }

    private func fileRoutes(isLoopback: Bool) -> [AdminRoute] {
        StaticFiles.files.sorted { $0.key < $1.key }.map { path, file in
            let headers =
                [
                    FieldName.eTag: "Differs when the file does.",
                    FieldName.cacheControl: "`no-cache`: ask each time.",
                ] as KeyValuePairs
            let name = String(path.dropFirst().map { $0 == "." ? "_" : $0 })
            let operation = APIOperation(
                name.isEmpty ? "getDashboard" : "getFile_" + name,
                name.isEmpty ? "Open the dashboard" : "Read a file of the dashboard", for: .anyone,
                [.header(FieldName.ifNoneMatch, .text, "The `ETag` of what is there already.")],
                answers: [
                    APIAnswer(200, "The file.", [file.mediaType: .text], headers: headers),
                    APIAnswer(304, "It is still the same.", headers: headers),
                ], refusals: isLoopback ? [.forbidden] : [])
            return AdminRoute(path, operation) { request in
                StaticFiles.answer(file, ifNoneMatch: request.headers[values: .ifNoneMatch])
            }
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

extension AdminRoute {
    /// The route of the port's document.
    fileprivate static func document(_ operation: APIOperation, _ bytes: [UInt8]) -> Self {
        Self(APIDocument.path, operation) { _ in
            Response(
                status: .ok, headers: [.contentType: "application/json"],
                body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
        }
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
