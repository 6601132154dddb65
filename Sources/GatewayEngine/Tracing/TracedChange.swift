import GatewayTelemetry
import Synchronization
import Tracing

/// A change whose trace is recorded, or several of one post: work on its way to devices is added to
/// that trace.
package final class TracedChange: Sendable {
    private struct Progress {
        /// The number of event loops that have not passed it.
        var loopsLeft: Int
        var deliveries = 0
        var from = UInt64.max
        var to: UInt64 = 0
        /// The channels through which a rebuild was confirmed.
        var confirmed: Set<DeliveryChannel> = []
    }

    private let tracer: RecordingTracer
    private let context: ServiceContext
    private let attributes: SpanAttributes
    private let telling: Mutex<Progress>

    /// - Parameters:
    ///   - context: The context of the parent span.
    ///   - attributes: The attributes of all spans.
    ///   - loops: The number of event loops that notify streams of it.
    init(
        _ tracer: RecordingTracer, _ context: ServiceContext, _ attributes: SpanAttributes,
        loops: Int
    ) {
        self.tracer = tracer
        self.context = context
        self.attributes = attributes
        telling = Mutex(Progress(loopsLeft: loops))
    }

    /// Begins a child span of the change.
    func span(_ name: String, _ kind: SpanKind = .internal, at start: UInt64) -> RecordedSpan {
        let span = tracer.startSpan(
            name, context: context, ofKind: kind,
            at: DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: start))
        span.attributes = attributes
        return span
    }

    // MARK: Streams

    /// Records that an event loop has written notifications of the change to streams. Until all
    /// loops have passed the change, this adds to its one span; afterwards, when a collapse window
    /// has ended, each call creates a span of its own.
    ///
    /// - Parameters:
    ///   - count: The number of notifications.
    ///   - from: The time of the first of them, in nanoseconds since 1970.
    ///   - to: The time of the last of them, in nanoseconds since 1970.
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

    /// Records that an event loop has written everything for this change that is not delayed.
    func passed() {
        let all = telling.withLock { telling -> Progress? in
            telling.loopsLeft -= 1
            return telling.loopsLeft == 0 ? telling : nil
        }
        guard let all, all.deliveries > 0 else { return }
        deliver(all.deliveries, from: all.from, to: all.to, isLate: false)
    }

    /// Records a confirmed rebuild; returns whether it is the first through that channel.
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
