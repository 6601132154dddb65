import GatewayCore
import OpenTelemetry
import Tracing

extension GatewayTracing {
    /// Notes an attempt to push, which has ended now, in the trace of the latest change it tells of.
    func pushed(
        _ order: PushOrder, _ report: PushReport, _ outcome: PushOutcome, milliseconds: Int64
    ) {
        guard !order.isManual, let change = change(at: order.content.sequence) else { return }
        let now = Self.now
        let span = change.span(
            "push \(order.channel)", .client,
            at: now - min(now, UInt64(max(0, milliseconds)) * 1_000_000))
        span.updateAttributes {
            $0[TraceAttribute.method] = "POST"
            $0[TraceAttribute.channel] = order.channel
            $0[TraceAttribute.outcome] = outcome.rawValue
            if let status = report.status { $0[TraceAttribute.status] = status }
            if let reason = report.reason { $0[TraceAttribute.reason] = reason }
            if outcome != .sent {
                $0[TraceAttribute.errorType] = report.reason ?? outcome.rawValue
            }
        }
        if outcome != .sent { span.setStatus(SpanStatus(code: .error)) }
        span.end(at: DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: now))
    }
}
