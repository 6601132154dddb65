import GatewayCore
import GatewayTelemetry
import Tracing
import WidgetModel

/// The traces of a post: that of its request, and those that events carry, which apply to their own
/// changes.
package struct PostTrace: Sendable {
    /// The traces of a post that is being written to disk.
    struct Decided: Sendable {
        /// The traced changes with their sequences, in order.
        var changes: [(change: TracedChange, first: UInt64, last: UInt64)] = []
        /// The messages to publish, each once.
        var messages: [LogMessage] = []
        fileprivate var spans: [RecordedSpan] = []
        private let decidedAt: UInt64

        /// - Parameter decidedAt: The time at which deciding ended, in nanoseconds since 1970.
        fileprivate init(decidedAt: UInt64) {
            self.decidedAt = decidedAt
        }

        /// A single change that required no decision.
        init(_ change: TracedChange, at sequence: UInt64) {
            decidedAt = 0
            changes = [(change, sequence, sequence)]
            messages = [.traced(change)]
        }

        /// Ends the spans and records the changes, once they are on disk.
        func committed(_ tracing: GatewayTracing) {
            for span in spans {
                span.end(at: DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: decidedAt))
            }
            tracing.note(changes)
        }
    }

    /// A change of the post: the index of its event, its sequence, and its decision.
    struct DecidedEvent {
        let index: Int
        let sequence: UInt64
        let decision: RuleSet.Decision
    }

    private let tracer: RecordingTracer
    /// The span of the request; `nil` if it is not recorded.
    private let request: ServiceContext?
    /// The spans of events with their own trace, by index, including those that are not recorded.
    private let own: [Int: RecordedSpan]

    /// Returns `nil` if nothing is recorded.
    init?(_ events: [CloudEvent], _ app: String, _ tracer: RecordingTracer) {
        self.tracer = tracer
        let current = ServiceContext.current
        request = current?.trace?.isSampled == true ? current : nil
        var own: [Int: RecordedSpan] = [:]
        for (index, event) in events.enumerated() {
            guard let traceparent = event.traceparent,
                let trace = TraceContext(
                    traceparent: traceparent, tracestate: event.tracestate),
                // An event that repeats the request's own span needs no second trace.
                !trace.isSameSpan(as: current?.remoteParent)
            else { continue }
            var context = ServiceContext.topLevel
            context.trace = trace
            let span = tracer.startSpan("change", context: context, ofKind: .consumer)
            span.attributes[TraceAttribute.app] = app
            if let request { span.addLink(SpanLink(context: request, attributes: [:])) }
            own[index] = span
        }
        self.own = own
        if request == nil, !own.values.contains(where: \.isRecording) { return nil }
    }

    /// Ends the spans, once the post is on disk or was rejected.
    func end(_ error: (any Error)? = nil) {
        for span in own.values {
            if let error { span.end(failing: error) } else { span.end() }
        }
    }

    /// Returns the traces of what was decided since `began`, for use when it is on disk.
    ///
    /// - Parameter loops: The number of event loops that notify streams of it.
    func decided(
        _ places: [DecidedEvent], _ events: [CloudEvent], _ app: String, by ruleSet: RuleSet,
        loops: Int,
        since began: UInt64
    ) -> Decided {
        var decided = Decided(decidedAt: GatewayTracing.now)
        let shared = places.filter { own[$0.index] == nil }
        let ofRequest = request.flatMap {
            begin(
                shared, of: events, app: app, below: $0, by: ruleSet, loops: loops, began: began,
                &decided)
        }
        for place in places {
            let change: TracedChange?
            if let span = own[place.index] {
                change =
                    span.isRecording
                    ? begin(
                        [place], of: events, app: app, below: span.context, by: ruleSet,
                        loops: loops, began: began, &decided) : nil
            } else {
                change = ofRequest
            }
            guard let change else { continue }
            if let last = decided.changes.indices.last, decided.changes[last].change === change,
                decided.changes[last].last + 1 == place.sequence
            {
                decided.changes[last].last = place.sequence
            } else {
                decided.changes.append((change, place.sequence, place.sequence))
            }
        }
        return decided
    }

    /// Begins to trace changes that share one trace.
    private func begin(
        _ places: [DecidedEvent], of events: [CloudEvent], app: String,
        below context: ServiceContext,
        by ruleSet: RuleSet, loops: Int, began: UInt64, _ decided: inout Decided
    ) -> TracedChange? {
        guard let last = places.last else { return nil }
        let entities = Set(places.map { events[$0.index].change.entity })
        var attributes: SpanAttributes = [:]
        attributes[TraceAttribute.app] = app
        attributes[TraceAttribute.sequence] = Int64(clamping: last.sequence)
        attributes[TraceAttribute.changes] = places.count
        if let entity = entities.first, entities.count == 1 {
            attributes[TraceAttribute.entity] = entity
        }
        let change = TracedChange(tracer, context, attributes, loops: loops)
        let span = change.span("decide", at: began)
        let rules = Set(places.flatMap { $0.decision.keys.map(\.rule) })
        span.updateAttributes {
            $0[TraceAttribute.rules] = rules.count
            $0[TraceAttribute.kinds] = Set(rules.map { ruleSet.rules[$0].kind }).sorted()
            $0[TraceAttribute.keys] = places.reduce(0) { $0 + $1.decision.keys.count }
            $0[TraceAttribute.unmatched] = places.count { $0.decision.isUnmatched }
            $0[TraceAttribute.broad] = places.count { $0.decision.isBroad }
        }
        decided.spans.append(span)
        decided.messages.append(.traced(change))
        return change
    }
}

/// The trace of an operator's reload.
package struct ReloadTrace: Sendable {
    private let tracer: RecordingTracer
    private let request: ServiceContext
    private let app: String
    private let scope: ReloadScope

    /// Returns `nil` if nothing is recorded.
    init?(_ app: String, _ scope: ReloadScope, _ tracer: RecordingTracer) {
        guard let request = ServiceContext.current, request.trace?.isSampled == true else {
            return nil
        }
        self.tracer = tracer
        self.request = request
        self.app = app
        self.scope = scope
    }

    /// Returns the trace to publish, once the reload is on disk.
    func committed(at sequence: UInt64, loops: Int) -> PostTrace.Decided {
        var attributes: SpanAttributes = [:]
        attributes[TraceAttribute.app] = app
        attributes[TraceAttribute.sequence] = Int64(clamping: sequence)
        // For a single client, record only that there was a reload.
        if case .kind(let kind) = scope { attributes[TraceAttribute.kinds] = [kind] }
        let change = TracedChange(tracer, request, attributes, loops: loops)
        return PostTrace.Decided(change, at: sequence)
    }
}
