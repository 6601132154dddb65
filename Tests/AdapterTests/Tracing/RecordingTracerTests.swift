import Logging
import Synchronization
import Testing
import Tracing

@testable import GatewayTelemetry

/// Keeps the spans that ended.
private final class Recorded: Sendable {
    private let all = Mutex<[SpanRecord]>([])

    var spans: [SpanRecord] { all.withLock { $0 } }

    func tracer(share: Double = 1) -> RecordingTracer {
        RecordingTracer(TraceSampling(share: share)) { span in self.all.withLock { $0.append(span) }
        }
    }
}

private struct Fields: Extractor, Injector {
    func extract(key: String, from carrier: [String: String]) -> String? { carrier[key] }
    func inject(_ value: String, forKey key: String, into carrier: inout [String: String]) {
        carrier[key] = value
    }
}

private struct Broken: Error {
    let secret = "hunter2"
}

@Suite struct RecordingTracerTests {
    @Test func `a span is the child of what another process said, and its own children's parent`()
        throws
    {
        let recorded = Recorded()
        let tracer = recorded.tracer(share: 0)
        var context = ServiceContext.topLevel
        tracer.extract(
            ["traceparent": TraceContextTests.good, "tracestate": "a=1"], into: &context,
            using: Fields())
        tracer.withSpan("outer", context: context, ofKind: .server) { outer in
            tracer.withSpan("inner") { _ in }
            outer.attributes["count"] = 3
        }
        let spans = recorded.spans
        try #require(spans.map(\.name) == ["inner", "outer"])
        #expect(spans[1].parent?.spanID.hexadecimal == TraceContextTests.span)
        #expect(spans[1].parent?.isRemote == true && spans[0].parent?.isRemote == false)
        #expect(spans[0].parent?.spanID == spans[1].context.spanID)
        #expect(Set(spans.map(\.context.traceID.hexadecimal)) == [TraceContextTests.trace])
        #expect(spans.allSatisfy { $0.context.state.text == "a=1" })
        #expect(spans[1].kind == .server)
        #expect(spans[1].attributes == [.init(name: "count", value: .integer(3))])
    }

    @Test func `what is not recorded leaves nothing but its place in the trace`() {
        let recorded = Recorded()
        let tracer = recorded.tracer()
        var context = ServiceContext.topLevel
        tracer.extract(
            ["traceparent": String(TraceContextTests.good.dropLast()) + "0"], into: &context,
            using: Fields())
        let span = tracer.startSpan("outer", context: context)
        #expect(!span.isRecording && !span.trace.isSampled)
        #expect(span.trace.traceID.hexadecimal == TraceContextTests.trace)
        span.attributes["a"] = "b"
        #expect(span.attributes["a"] == nil)
        span.addEvent("happened")
        span.end()
        #expect(recorded.spans.isEmpty)
    }

    @Test func `a trace of which nothing was said begins here`() throws {
        let recorded = Recorded()
        var context = ServiceContext.topLevel
        let tracer = recorded.tracer()
        tracer.extract(["traceparent": "00-nonsense"], into: &context, using: Fields())
        #expect(context.trace == nil)
        for _ in 0..<2 { tracer.startSpan("one", context: context).end() }
        let spans = recorded.spans
        try #require(spans.count == 2)
        #expect(spans[0].parent == nil && spans[0].context.isRandom)
        #expect(spans[0].context.traceID != spans[1].context.traceID)
        var carrier: [String: String] = [:]
        context.trace = spans[0].context
        tracer.inject(context, into: &carrier, using: Fields())
        #expect(carrier == ["traceparent": spans[0].context.traceparent])
    }

    @Test func `an error is named and not quoted, and a span ends once`() throws {
        let recorded = Recorded()
        let tracer = recorded.tracer()
        #expect(throws: Broken.self) {
            try tracer.withSpan("fails") { _ in throw Broken() }
        }
        let span = tracer.startSpan("ends")
        span.end(at: DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: 1))
        span.end()
        let spans = recorded.spans
        try #require(spans.count == 2)
        #expect(spans[0].failed == true && spans[0].events.map(\.name) == ["exception"])
        #expect(
            spans[0].events.first?.attributes
                == [.init(name: "exception.type", value: .text("Broken"))])
        #expect(!"\(spans[0])".contains("hunter2"))
        // A span never ends before it begins.
        #expect(spans[1].end == spans[1].start)
    }

    @Test func `a span is bounded, whatever is said of it`() throws {
        let recorded = Recorded()
        let span = recorded.tracer().startSpan(String(repeating: "n", count: 1_000))
        var attributes = SpanAttributes()
        for number in 0..<100 {
            attributes["key\(number)"] = String(repeating: "ü", count: 1_000)
        }
        attributes["a-list"] = Array(repeating: "x", count: 100)
        span.attributes = attributes
        for number in 0..<100 {
            span.addEvent(SpanEvent(name: "event\(number)"))
            span.addLink(SpanLink(context: span.context, attributes: [:]))
        }
        span.end()
        let one = try #require(recorded.spans.first)
        #expect(one.name.utf8.count == SpanRecord.textBytesMax)
        #expect(one.attributes.count == SpanRecord.attributesMax)
        #expect(one.events.count == SpanRecord.eventsMax)
        #expect(one.links.count == SpanRecord.eventsMax)
        for case .text(let text) in one.attributes.map(\.value) {
            #expect(text == String(repeating: "ü", count: SpanRecord.textBytesMax / 2))
        }
        #expect(
            one.attributes.first?.value
                == .texts(Array(repeating: "x", count: SpanRecord.textsMax)))
    }

    @Test func `the log is told where a line belongs, inside of a span alone`() {
        let tracer = Recorded().tracer()
        #expect(Logger.MetadataProvider.traceContext.get().isEmpty)
        tracer.withSpan("outer") { span in
            #expect(
                Logger.MetadataProvider.traceContext.get() == [
                    "trace_id": .string(span.trace.traceID.hexadecimal),
                    "span_id": .string(span.trace.spanID.hexadecimal),
                ])
        }
    }
}
