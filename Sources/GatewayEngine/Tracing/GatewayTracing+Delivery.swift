import GatewayCore
import GatewayTelemetry
import Tracing

extension GatewayTracing {
    /// Records a push attempt that has just ended, in the trace of the latest change that it
    /// covers.
    func pushed(
        _ order: DuePush, _ report: PushReport, _ outcome: PushOutcome, milliseconds: Int64
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
            if outcome.isFailure {
                $0[TraceAttribute.errorType] = report.reason ?? outcome.rawValue
            }
        }
        if outcome.isFailure { span.setStatus(SpanStatus(code: .error)) }
        span.end(at: DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: now))
    }

    /// Records in the trace of a change that a client has rebuilt for it: for each channel, the
    /// first confirmed rebuild.
    func confirmed(_ rebuild: ReportedRebuilds.Confirmation, _ channel: DeliveryChannel) {
        guard let change = change(at: rebuild.change.sequence),
            change.isFirstConfirmed(by: channel)
        else { return }
        let start = UInt64(max(0, rebuild.change.acceptedAt)) &* 1_000_000
        let span = change.span("confirm \(channel.rawValue)", at: start)
        span.updateAttributes {
            $0[TraceAttribute.channel] = channel.rawValue
            $0[TraceAttribute.kinds] = [rebuild.kind]
        }
        span.end(
            at: DefaultTracerClock.Timestamp(
                nanosecondsSinceEpoch: start &+ UInt64(max(0, rebuild.milliseconds)) &* 1_000_000))
    }
}
