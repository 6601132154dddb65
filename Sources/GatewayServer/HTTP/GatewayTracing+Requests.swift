import GatewayEngine
import GatewayTelemetry
import NIOHTTP1
import Tracing

extension GatewayTracing {
    /// Answers a request within a span, in the trace of the request's `traceparent`. A request that
    /// is answered with 401 leaves no span.
    func request(
        _ request: GatewayRequest, to route: GatewayRoute,
        _ answer: () async throws -> RouteResponse
    ) async throws -> RouteResponse {
        var context = ServiceContext.topLevel
        tracer.extract(request.head.headers, into: &context, using: HeaderFields())
        let method = request.head.method.rawValue
        let span = tracer.startSpan(
            "\(method) \(route.template)", context: context, ofKind: .server)
        return try await ServiceContext.$current.withValue(span.context) {
            let answer = try await answer()
            let status = answer.head.status
            guard status != .unauthorized else { return answer }
            span.updateAttributes {
                $0[TraceAttribute.method] = method
                $0[TraceAttribute.route] = route.template
                $0[TraceAttribute.status] = Int(status.code)
                if status.code >= 500 { $0[TraceAttribute.errorType] = String(status.code) }
            }
            if status.code >= 500 { span.setStatus(SpanStatus(code: .error)) }
            span.end()
            return answer
        }
    }
}

private struct HeaderFields: Extractor {
    func extract(key: String, from carrier: HTTPHeaders) -> String? { carrier.value(key) }
}
