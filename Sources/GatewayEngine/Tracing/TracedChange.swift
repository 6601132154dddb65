import OpenTelemetry
import Synchronization
import Tracing

/// A change whose trace is recorded, or several of one post: what is done about it on its way to
/// devices becomes part of that trace.
package final class TracedChange: Sendable {
    private struct Telling {
        /// Event loops that have not gone past it.
        var loopsLeft: Int
        var deliveries = 0
        var from = UInt64.max
        var to: UInt64 = 0
        /// By which a rebuild was confirmed.
        var confirmed: Set<DeliveryChannel> = []
    }

    private let tracer: RecordingTracer
    private let context: ServiceContext
    /// What all spans of it say.
    private let attributes: SpanAttributes
    private let telling: Mutex<Telling>

    /// - Parameters:
    ///   - context: Of the span that its others are below.
    ///   - attributes: What all of them say.
    ///   - loops: How many event loops tell streams of it.
    init(
        _ tracer: RecordingTracer, _ context: ServiceContext, _ attributes: SpanAttributes,
        loops: Int
    ) {
        self.tracer = tracer
        self.context = context
        self.attributes = attributes
        telling = Mutex(Telling(loopsLeft: loops))
    }

    /// Begins a span below that of the change.
    func span(_ name: String, _ kind: SpanKind = .internal, at start: UInt64) -> RecordedSpan {
        let span = tracer.startSpan(
            name, context: context, ofKind: kind,
            at: DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: start))
        span.attributes = attributes
        return span
    }

    // MARK: Streams

    /// An event loop has written notifications of it to streams. Before all have gone past it that
    /// adds to the one span there is of it; afterwards, when a window for collecting changes has
    /// ended, each is a span of its own.
    ///
    /// - Parameters:
    ///   - count: How many.
    ///   - from: When the first of them was, in nanoseconds since 1970; and `to`, the last.
    func told(_ count: Int, from: UInt64, to: UInt64) {
        let isLate = telling.withLock { telling in
            guard telling.loopsLeft > 0 else { return true }
            telling.deliveries += count
            telling.from = min(telling.from, from)
            telling.to = max(telling.to, to)
            return false
        }
        if isLate { deliver(count, from: from, to: to, isLate: true) }
    }

    /// An event loop has written what it had to of this change without delay.
    func passed() {
        let all = telling.withLock { telling -> Telling? in
            telling.loopsLeft -= 1
            return telling.loopsLeft == 0 ? telling : nil
        }
        guard let all, all.deliveries > 0 else { return }
        deliver(all.deliveries, from: all.from, to: all.to, isLate: false)
    }

    /// A rebuild is confirmed; answers whether it is the first by that channel.
    func isFirstConfirmed(by channel: DeliveryChannel) -> Bool {
        telling.withLock { $0.confirmed.insert(channel).inserted }
    }

    private func deliver(_ count: Int, from: UInt64, to: UInt64, isLate: Bool) {
        let span = span("deliver stream", at: from)
        span.updateAttributes {
            $0[TraceAttribute.channel] = DeliveryChannel.stream.rawValue
            $0[TraceAttribute.deliveries] = count
            $0[TraceAttribute.isCollapsed] = isLate
        }
        span.end(at: DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: to))
    }
}
