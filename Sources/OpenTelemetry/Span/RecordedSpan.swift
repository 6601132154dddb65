import Synchronization
import Tracing

/// A span while it goes on. What is said of one that is not recorded is forgotten at once; one that
/// is never ended leaves no trace.
package final class RecordedSpan: Span {
    private struct State {
        var name: String
        var attributes = SpanAttributes()
        var events: [SpanRecord.Event] = []
        var links: [TraceContext] = []
        var failed: Bool?
    }

    /// For what is done as part of it.
    package let context: ServiceContext
    /// How it is called by others.
    package let trace: TraceContext
    private let parent: TraceContext?
    private let kind: SpanKind
    private let start: UInt64
    private let take: @Sendable (SpanRecord) -> Void
    /// `nil` once it has ended, and where it is not recorded.
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

    /// Whether it is recorded and has not ended.
    package var isRecording: Bool { state.withLock { $0 != nil } }

    /// What is done.
    package var operationName: String {
        get { state.withLock { $0?.name ?? "" } }
        set { state.withLock { $0?.name = newValue } }
    }

    /// What is known of it. Nobody's secrets belong here: it is sent to a collector.
    package var attributes: SpanAttributes {
        get { state.withLock { $0?.attributes ?? [:] } }
        set { state.withLock { $0?.attributes = newValue } }
    }

    /// Says whether it failed; words are not taken, for they may say anything.
    package func setStatus(_ status: SpanStatus) {
        state.withLock { $0?.failed = status.code == .error }
    }

    /// Notes something that happened; beyond ``SpanRecord/eventsMax`` nothing more.
    package func addEvent(_ event: SpanEvent) {
        state.withLock { state in
            guard let count = state?.events.count, count < SpanRecord.eventsMax else { return }
            state?.events.append(
                SpanRecord.Event(
                    name: event.name.cut(to: SpanRecord.textBytesMax),
                    time: event.nanosecondsSinceEpoch, attributes: .init(event.attributes)))
        }
    }

    /// Notes an error by its type; its words are not taken, for they may say anything.
    package func recordError<Instant: TracerInstant>(
        _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
    ) {
        guard isRecording else { return }
        var attributes = attributes
        attributes["exception.type"] = "\(type(of: error))"
        addEvent(SpanEvent(name: "exception", at: instant(), attributes: attributes))
    }

    /// Notes a span that it has to do with; beyond ``SpanRecord/eventsMax`` nothing more.
    package func addLink(_ link: SpanLink) {
        guard let trace = link.context.trace else { return }
        state.withLock { state in
            guard let count = state?.links.count, count < SpanRecord.eventsMax else { return }
            state?.links.append(trace)
        }
    }

    /// It has ended: once.
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
