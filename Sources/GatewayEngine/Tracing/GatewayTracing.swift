import GatewayCore
import Logging
import OpenTelemetry
import Synchronization
import Tracing
import WidgetModel

/// The traces of one gateway, from the requests of backends to what devices are told. Where nothing
/// is traced there is none of it, and nothing to pay for.
///
/// It knows the traces of a bounded number of recent changes, in memory: what a restart finds undone
/// is done without a trace.
package final class GatewayTracing: Sendable {
    /// Posts, and changes with a trace of their own, whose traces are known.
    private static let changesMax = 16_384
    /// Longest time for what is left at the end.
    private static let flushMax = Duration.seconds(3)

    package let tracer: RecordingTracer
    private let exporter: SpanExporter
    private let collector: Collector
    package let logger = Logger(label: LogLevels.requests)
    private let changes = Mutex(SequenceWindow<TracedChange>(rangesMax: changesMax))
    /// The last sequence in `changes`.
    private let newest = Atomic<UInt64>(0)

    /// Sends nothing before ``start()``.
    ///
    /// - Throws: ``Faults``.
    package init(_ configuration: TracingConfiguration, clock: GatewayClock) throws(Faults) {
        let instance = SpanID.random().hexadecimal
        let collector = try Collector(
            configuration, instance: instance, Logger(label: "timeline-gateway.tracing"),
            clock: clock)
        let exporter = SpanExporter(now: clock.now) { await collector.send($0) }
        self.collector = collector
        self.exporter = exporter
        tracer = RecordingTracer(TraceSampling(share: configuration.share)) { exporter.take($0) }
    }

    /// Begins to send spans.
    package func start() { exporter.start() }

    /// Sends what is left, if that is soon done.
    package func stop() async {
        await exporter.stop(within: Self.flushMax)
        collector.close()
    }

    /// What became of spans so far.
    package var counts: SpanBatcher.Counts { exporter.counts }

    /// Nanoseconds since 1970.
    static var now: UInt64 { DefaultTracerClock.now.nanosecondsSinceEpoch }

    // MARK: Commits

    /// Begins the span in which something is written down, where the request has one.
    func beginCommit() -> RecordedSpan? {
        guard let context = ServiceContext.current, context.trace?.isSampled == true else {
            return nil
        }
        return tracer.startSpan("commit", context: context)
    }

    // MARK: Changes

    /// Notes the traces of changes that are on disk.
    func note(_ traced: [(change: TracedChange, first: UInt64, last: UInt64)]) {
        guard let last = traced.last?.last else { return }
        changes.withLock { changes in
            for one in traced { changes.note(one.change, of: one.first, through: one.last) }
        }
        newest.store(last, ordering: .releasing)
    }

    /// The trace of a change; `nil` where none is recorded, or the change is too long ago.
    func change(at sequence: UInt64) -> TracedChange? {
        guard sequence <= newest.load(ordering: .acquiring) else { return nil }
        return changes.withLock { $0[sequence] }
    }
}

extension RecordedSpan {
    /// It ends with an error; one that is the sender's doing is not a failure of the gateway.
    func end(failing error: any Error) {
        let known = error as? EngineError
        attributes[TraceAttribute.errorType] = known?.code ?? "\(type(of: error))"
        if known?.isFailure ?? true { setStatus(SpanStatus(code: .error)) }
        end()
    }
}
