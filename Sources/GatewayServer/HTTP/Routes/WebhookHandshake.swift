import GatewayCore
import NIOHTTP1
import WidgetModel

/// A sender's question whether it may send CloudEvents (CloudEvents HTTP 1.1 Web Hooks for Event
/// Delivery, section 4). The answer permits nothing: each post still needs a token.
struct WebhookHandshake: Equatable {
    /// The longest name of a sender, bytes: that of a DNS name with a port.
    private static let originBytesMax = 260

    /// The name of the sender.
    let origin: String
    /// The wanted number of requests per minute; `nil` where the receiver decides.
    let rate: Int64?

    /// Reads the fields of a request; returns `nil` if it is not such a question. Throws 400.
    init?(_ fields: HTTPHeaders) throws(ProblemDetails) {
        guard let origin = fields.value(FieldName.webHookRequestOrigin) else { return nil }
        let isName = origin.utf8.allSatisfy { $0.isLetterOrDigit || "-_.:[]".utf8.contains($0) }
        guard isName, (1...Self.originBytesMax).contains(origin.utf8.count) else {
            throw Problem.malformed("WebHook-Request-Origin must be the DNS name of the sender.")
        }
        self.origin = origin
        guard let text = fields.value(FieldName.webHookRequestRate) else {
            self.rate = nil
            return
        }
        guard let rate = Int64(text), rate > 0 else {
            throw Problem.malformed(
                "WebHook-Request-Rate must be a number of requests per minute, greater than 0.")
        }
        self.rate = rate
    }

    /// The fields of the answer. `limit` is the rate of an app.
    func answer(within limit: TokenRate) -> HTTPHeaders {
        let allowed = max(1, limit.count * 60_000 / limit.period)
        return [
            FieldName.webHookAllowedOrigin: origin,
            FieldName.webHookAllowedRate: String(min(rate ?? allowed, allowed)),
        ]
    }
}

extension GatewayRoutes {
    /// Answers `OPTIONS` of the changes: with the methods, and a sender's question.
    func offerChanges(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> RouteResponse {
        // The same for every app, known or not.
        _ = try context.name("app")
        let handshake = try WebhookHandshake(request.head.headers)
        return RouteResponse(
            .ok, headers: handshake?.answer(within: admission.requestLimits.appRate) ?? [:])
    }
}
