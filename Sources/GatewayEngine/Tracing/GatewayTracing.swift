import GatewayCore
import GatewayOperations
import GatewayTelemetry
import Logging
import Synchronization
import Tracing
import WidgetModel

/// The traces of one gateway, from backend requests to notifications. A gateway that traces nothing
/// has none, at no cost.
///
/// It keeps the traces of a bounded number of recent changes in memory: work that a restart repeats
/// is done without a trace.
package final class GatewayTracing: Sendable {
    /// The maximum number of posts, and of changes with their own trace, whose traces are kept.
    private static let changesMax = 16_384
    /// The maximum time to send the remaining spans at the end.
    private static let flushMax = Duration.seconds(3)

    package let tracer: RecordingTracer
    private let exporter: SpanExporter
    private let collector: Collector
    private let changes = Mutex(SequenceWindow<TracedChange>(rangesMax: changesMax))
    /// The last sequence in `changes`.
    private let newest = Atomic<UInt64>(0)

    /// Creates the tracing; sends nothing before ``start()``.
    package init(
        _ configuration: TracingConfiguration, clock: GatewayClock, log: GatewayLog
    ) throws(Faults) {
        let instance = SpanID.random().hexadecimal
        let collector = try Collector(
            configuration, instance: instance, log.logger("timeline-gateway.tracing"),
            clock: clock)
        let exporter = SpanExporter(now: clock.now) { await collector.send($0) }
        self.collector = collector
        self.exporter = exporter
        tracer = RecordingTracer(TraceSampling(share: configuration.share)) { exporter.take($0) }
    }

    /// Begins to send spans.
    package func start() { exporter.start() }

    /// Sends the remaining spans, within a time limit.
    package func stop() async {
        await exporter.stop(within: Self.flushMax)
        collector.close()
    }

    /// The counts of spans by their result so far.
    package var counts: SpanBatcher.Counts { exporter.counts }

    /// Nanoseconds since 1970.
    static var now: UInt64 { DefaultTracerClock.now.nanosecondsSinceEpoch }

    // MARK: Commits

    /// Begins the span of a write, if the request has a span.
    func beginCommit() -> RecordedSpan? {
        guard let context = ServiceContext.current, context.trace?.isSampled == true else {
            return nil
        }
        return tracer.startSpan("commit", context: context)
    }

    // MARK: Changes

    /// Records the traces of changes that are on disk.
    func note(_ traced: [(change: TracedChange, first: UInt64, last: UInt64)]) {
        guard let last = traced.last?.last else { return }
        changes.withLock { changes in
            for one in traced { changes.note(one.change, of: one.first, through: one.last) }
        }
        newest.store(last, ordering: .releasing)
    }

    /// The trace of a change; `nil` if none is recorded, or the change is too old.
    func change(at sequence: UInt64) -> TracedChange? {
        guard sequence <= newest.load(ordering: .acquiring) else { return nil }
        return changes.withLock { $0[sequence] }
    }

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

extension RecordedSpan {
    /// Ends the span with an error, which counts as a failure unless the sender caused it.
    func end(failing error: any Error) {
        let known = error as? EngineError
        attributes[TraceAttribute.errorType] = known?.code ?? "\(type(of: error))"
        if known?.isFailure ?? true { setStatus(SpanStatus(code: .error)) }
        end()
    }
}
