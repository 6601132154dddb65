import Tracing

/// Creates spans for swift-distributed-tracing, and passes on recorded ones when they end.
package final class RecordingTracer: Tracer {
    package typealias Span = RecordedSpan

    private let sampling: TraceSampling
    private let take: @Sendable (SpanRecord) -> Void

    /// `take` is called with each recorded span when it has ended, on any thread, and must not
    /// block.
    package init(_ sampling: TraceSampling, take: @escaping @Sendable (SpanRecord) -> Void) {
        self.sampling = sampling
        self.take = take
    }

    /// Starts a span below that of `context`; without one it is the first of a trace.
    package func startSpan<Instant: TracerInstant>(
        _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind,
        at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
    ) -> RecordedSpan {
        var context = context()
        let parent = context.trace
        var generator = SystemRandomNumberGenerator()
        let traceID = parent?.traceID ?? .random(using: &generator)
        let trace = TraceContext(
            traceID: traceID, spanID: .random(using: &generator),
            isSampled: sampling.samples(traceID, parent: parent),
            isRandom: parent?.isRandom ?? true, state: parent?.state ?? TraceState())
        context.trace = trace
        if let parent, parent.isRemote { context.remoteParent = parent }
        return RecordedSpan(
            operationName, trace, of: parent, in: context, kind: kind,
            start: instant().nanosecondsSinceEpoch, take: take)
    }

    /// Does nothing, because the tracer stores no spans.
    package func forceFlush() {}

    /// Reads the context of another process; does nothing if it is missing or malformed.
    package func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
    ) where Extract.Carrier == Carrier {
        guard let parent = extractor.extract(key: "traceparent", from: carrier),
            let trace = TraceContext(
                traceparent: parent,
                tracestate: extractor.extract(key: "tracestate", from: carrier))
        else { return }
        context.trace = trace
    }

    /// Writes the current context for another process.
    package func inject<Carrier, Inject: Injector>(
        _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject.Carrier == Carrier {
        guard let trace = context.trace else { return }
        injector.inject(trace.traceparent, forKey: "traceparent", into: &carrier)
        guard !trace.state.text.isEmpty else { return }
        injector.inject(trace.state.text, forKey: "tracestate", into: &carrier)
    }
}
