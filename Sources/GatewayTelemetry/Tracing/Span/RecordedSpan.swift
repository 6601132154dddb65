import Synchronization
import Tracing

/// A span in progress. Data of a span that is not recorded is discarded at once; a span that is
/// never ended is not exported.
package final class RecordedSpan: Span {
    private struct State {
        var name: String
        var attributes = SpanAttributes()
        var events: [SpanRecord.Event] = []
        var links: [TraceContext] = []
        var failed: Bool?
    }

    /// The context for work that is part of the span.
    package let context: ServiceContext
    /// The propagated identity of the span.
    package let trace: TraceContext
    private let parent: TraceContext?
    private let kind: SpanKind
    private let start: UInt64
    private let take: @Sendable (SpanRecord) -> Void
    /// The state; `nil` after the end, and if the span is not recorded.
    private let state: Mutex<State?>

    init(
        _ name: String, _ trace: TraceContext, of parent: TraceContext?, in context: ServiceContext,
        kind: SpanKind, start: UInt64, take: @escaping @Sendable (SpanRecord) -> Void
    ) {
        self.trace = trace
        self.parent = parent
        self.context = context
        self.kind = kind
        self.start = start
        self.take = take
        state = Mutex(trace.isSampled ? State(name: name) : nil)
    }

    package var isRecording: Bool { state.withLock { $0 != nil } }

    package var operationName: String {
        get { state.withLock { $0?.name ?? "" } }
        set { state.withLock { $0?.name = newValue } }
    }

    /// The attributes of the span. They must not contain secrets, because they are sent to a
    /// collector.
    package var attributes: SpanAttributes {
        get { state.withLock { $0?.attributes ?? [:] } }
        set { state.withLock { $0?.attributes = newValue } }
    }

    /// Sets whether the operation failed; the message is dropped, because it may contain anything.
    package func setStatus(_ status: SpanStatus) {
        state.withLock { $0?.failed = status.code == .error }
    }

    /// Adds an event; ignored beyond ``SpanRecord/eventsMax``.
    package func addEvent(_ event: SpanEvent) {
        state.withLock { state in
            guard let count = state?.events.count, count < SpanRecord.eventsMax else { return }
            state?.events.append(
                SpanRecord.Event(
                    name: event.name.cut(to: SpanRecord.textBytesMax),
                    time: event.nanosecondsSinceEpoch, attributes: .init(event.attributes)))
        }
    }

    /// Records an error by its type; its message is dropped, because it may contain anything.
    package func recordError<Instant: TracerInstant>(
        _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
    ) {
        guard isRecording else { return }
        var attributes = attributes
        attributes["exception.type"] = "\(type(of: error))"
        addEvent(SpanEvent(name: "exception", at: instant(), attributes: attributes))
    }

    /// Links a related span; ignored beyond ``SpanRecord/eventsMax``.
    package func addLink(_ link: SpanLink) {
        guard let trace = link.context.trace else { return }
        state.withLock { state in
            guard let count = state?.links.count, count < SpanRecord.eventsMax else { return }
            state?.links.append(trace)
        }
    }

    /// Ends the span; further calls have no effect.
    package func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
        let ended = state.withLock { state in
            defer { state = nil }
            return state
        }
        guard let ended else { return }
        take(
            SpanRecord(
                context: trace, parent: parent, name: ended.name.cut(to: SpanRecord.textBytesMax),
                kind: kind, start: start, end: max(start, instant().nanosecondsSinceEpoch),
                attributes: .init(ended.attributes), events: ended.events, links: ended.links,
                failed: ended.failed))
    }
}
