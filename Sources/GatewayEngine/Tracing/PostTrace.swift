import GatewayCore
import OpenTelemetry
import Tracing
import WidgetModel

/// The traces of a post: that of its request, and those that events bring themselves, which then
/// hold for their own changes.
struct PostTrace: Sendable {
    /// What is traced of a post that is on its way to disk.
    struct Decided: Sendable {
        /// By the sequences of their changes, in their order.
        var changes: [(change: TracedChange, first: UInt64, last: UInt64)] = []
        /// Each once.
        var messages: [LogMessage] = []
        fileprivate var spans: [RecordedSpan] = []
        private let decidedAt: UInt64

        /// - Parameter decidedAt: When deciding ended, in nanoseconds since 1970.
        fileprivate init(decidedAt: UInt64) {
            self.decidedAt = decidedAt
        }

        /// One change about which there was nothing to decide.
        init(_ change: TracedChange, at sequence: UInt64) {
            decidedAt = 0
            changes = [(change, sequence, sequence)]
            messages = [.traced(change)]
        }

        /// It is on disk.
        func committed(_ tracing: GatewayTracing) {
            for span in spans {
                span.end(at: DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: decidedAt))
            }
            tracing.note(changes)
        }
    }

    /// A change of the post: its place among the events, its sequence, and what it hits.
    struct Place {
        let index: Int
        let sequence: UInt64
        let decision: RuleSet.Decision
    }

    private let tracer: RecordingTracer
    /// The span of the request; `nil` where it is not recorded.
    private let request: ServiceContext?
    /// Of events that bring a trace of their own, by place; one that is not recorded counts, too.
    private let own: [Int: RecordedSpan]

    /// `nil` where nothing is recorded.
    init?(_ events: [CloudEvent], _ app: String, _ tracer: RecordingTracer) {
        self.tracer = tracer
        let current = ServiceContext.current
        request = current?.trace?.isSampled == true ? current : nil
        var own: [Int: RecordedSpan] = [:]
        for (index, event) in events.enumerated() {
            guard let traceparent = event.traceparent,
                let trace = TraceContext(
                    traceparent: traceparent, tracestate: event.tracestate),
                // Who says the same twice is asked once.
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

    /// The post is on disk, or was refused.
    func end(_ error: (any Error)? = nil) {
        for span in own.values {
            if let error { span.end(failing: error) } else { span.end() }
        }
    }

    /// Says what was decided since `began`, for when it is on disk.
    ///
    /// - Parameter loops: How many event loops tell streams of it.
    func decided(
        _ places: [Place], _ events: [CloudEvent], _ app: String, by ruleSet: RuleSet, loops: Int,
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

    /// Begins to trace changes that have one trace in common.
    private func begin(
        _ places: [Place], of events: [CloudEvent], app: String, below context: ServiceContext,
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
