import Foundation
import GatewayCore
import HTTPTypes
import Hummingbird
import NIOCore
import OpenMetrics
import WidgetModel

/// The plain admin port: metrics, health, and what runs.
struct AdminRoutes: Sendable {
    let page: MetricsPage
    let readiness: Readiness

    /// Everything the port has.
    func router() -> Router<BasicRequestContext> {
        let router = probes()
        router.get("/metrics") { request, _ in
            let format = ExpositionFormat(accept: request.headers[values: .accept])
            return Response(
                status: .ok, headers: [.contentType: format.contentType, .vary: "Accept"],
                body: .init(byteBuffer: .init(string: page.text(format))))
        }
        router.get("/version") { _, _ in
            Response(.ok, json: BuildInformation.json)
        }
        return router
    }

    /// What probes ask: `/livez` says that a restart would help, `/readyz` whether the gateway does
    /// its work now.
    func probes() -> Router<BasicRequestContext> {
        let router = Router()
        router.get("/livez") { _, _ in
            let stuck = verdict().stuck
            return Self.answer(stuck.isEmpty, "live", "stuck", stuck)
        }
        router.get("/readyz") { _, _ in
            let failing = verdict().notReady
            return Self.answer(failing.isEmpty, "ready", "not ready", failing)
        }
        return router
    }

    private func verdict() -> Health.Verdict {
        readiness.verdict(
            page.sequencer, certificateEnds: Int64(page.certificateEnds().timeIntervalSince1970),
            wallSeconds: page.sequencer.desk.wallSeconds())
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
