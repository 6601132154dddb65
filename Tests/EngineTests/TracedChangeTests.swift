import Synchronization
import Testing
import Tracing

@testable import GatewayEngine
@testable import GatewayTelemetry

@Suite struct TracedChangeTests {
    /// A change that passes through several event loops, and its spans that have ended.
    private final class Way: Sendable {
        let change: TracedChange
        private let ended: Ended

        private final class Ended: Sendable {
            let spans = Mutex<[SpanRecord]>([])
        }

        init(loops: Int) {
            let ended = Ended()
            self.ended = ended
            let tracer = RecordingTracer(TraceSampling(share: 1)) { span in
                ended.spans.withLock { $0.append(span) }
            }
            change = TracedChange(
                tracer, tracer.startSpan("request").context, [TraceAttribute.app: "a"],
                loops: loops)
        }

        /// The start, end and count of the spans, and whether each is from the end of a window.
        var told: [String] {
            ended.spans.withLock { $0 }.map { span in
                let values = [TraceAttribute.deliveries, TraceAttribute.isCollapsed].map { name in
                    span.attributes.first { $0.name == name }.map { "\($0.value)" } ?? "-"
                }
                return "\(span.name) \(span.start)-\(span.end) \(values.joined(separator: " "))"
            }
        }
    }

    @Test func `all event loops together are one span, from the first write to the last`() {
        let way = Way(loops: 3)
        way.change.told(2, from: 50, to: 60)
        way.change.passed()
        way.change.told(5, from: 20, to: 30)
        way.change.passed()
        #expect(way.told.isEmpty)
        way.change.passed()
        #expect(way.told == ["deliver stream 20-60 integer(7) flag(false)"])
    }

    @Test func `what reaches nobody is no delivery`() {
        let way = Way(loops: 2)
        way.change.passed()
        way.change.passed()
        #expect(way.told.isEmpty)
    }

    @Test func `of rebuilds the first by each channel counts`() {
        let change = Way(loops: 1).change
        #expect(change.isFirstConfirmed(by: .poll))
        #expect(change.isFirstConfirmed(by: .stream))
        #expect(!change.isFirstConfirmed(by: .poll))
    }

    @Test func `what waited for a window's end is a delivery of its own`() {
        let way = Way(loops: 1)
        way.change.told(1, from: 10, to: 11)
        way.change.passed()
        way.change.told(4, from: 200, to: 210)
        #expect(
            way.told == [
                "deliver stream 10-11 integer(1) flag(false)",
                "deliver stream 200-210 integer(4) flag(true)",
            ])
    }
}
