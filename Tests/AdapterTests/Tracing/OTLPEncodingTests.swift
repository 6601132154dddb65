import Testing
import Tracing
import WidgetModel

@testable import GatewayTelemetry

@Suite struct OTLPEncodingTests {
    private static let parent = TraceContext(traceparent: TraceContextTests.good)

    private func text(_ spans: [SpanRecord]) -> String {
        let encoding = OTLPEncoding(
            resource: [.init(name: "service.name", value: .text("a \"b\""))],
            scope: ("timeline-gateway", "1.2"))
        return String(decoding: encoding.body(spans), as: UTF8.self)
    }

    @Test func `a span is written as protobuf's JSON has it, to the letter`() throws {
        let parent = try #require(Self.parent)
        var context = parent
        context.spanID = try #require(SpanID(0x00F0_67AA_0BA9_02B7))
        context.state = try #require(TraceState("k=v"))
        context.isRandom = true
        context.isRemote = false
        let one = SpanRecord(
            context: context, parent: parent, name: "POST /v1", kind: .server,
            start: 1_544_712_660_000_000_000, end: 1_544_712_661_000_000_000,
            attributes: [
                .init(name: "flag", value: .flag(true)),
                .init(name: "list", value: .texts(["a", "b"])),
                .init(name: "number", value: .integer(.max)),
                .init(name: "part", value: .number(0.5)),
                .init(name: "text", value: .text("ü\n")),
            ], events: [.init(name: "writing", time: 7, attributes: [])], links: [parent],
            failed: true)
        #expect(
            text([one]) == #"{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","#
                + #""value":{"stringValue":"a \"b\""}}]},"scopeSpans":[{"scope":{"name":"#
                + #""timeline-gateway","version":"1.2"},"spans":[{"#
                + #""traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"00f067aa0ba902b7","#
                + #""flags":771,"traceState":"k=v","parentSpanId":"b7ad6b7169203331","#
                + #""name":"POST /v1","kind":2,"startTimeUnixNano":"1544712660000000000","#
                + #""endTimeUnixNano":"1544712661000000000","attributes":["#
                + #"{"key":"flag","value":{"boolValue":true}},"#
                + #"{"key":"list","value":{"arrayValue":{"values":["#
                + #"{"stringValue":"a"},{"stringValue":"b"}]}}},"#
                + #"{"key":"number","value":{"intValue":"9223372036854775807"}},"#
                + #"{"key":"part","value":{"doubleValue":0.5}},"#
                + #"{"key":"text","value":{"stringValue":"ü\n"}}],"#
                + #""events":[{"timeUnixNano":"7","name":"writing"}],"#
                + #""links":[{"traceId":"0af7651916cd43dd8448eb211c80319c","#
                + #""spanId":"b7ad6b7169203331","flags":769}],"status":{"code":2}}]}]}]}"#)
    }

    @Test(arguments: [
        (SpanKind.internal, 1), (.server, 2), (.client, 3), (.producer, 4), (.consumer, 5),
    ])
    func `kinds are numbers`(kind: SpanKind, number: Int) throws {
        let context = try #require(Self.parent)
        let one = SpanRecord(
            context: context, parent: nil, name: "n", kind: kind, start: 1, end: 2, attributes: [],
            events: [], links: [], failed: nil)
        let written = text([one])
        #expect(written.contains(#""kind":\#(number),"#))
        #expect(!written.contains("parentSpanId") && !written.contains("status"))
    }

    @Test(arguments: [
        (Double.nan, "\"NaN\""), (.infinity, "\"Infinity\""), (-.infinity, "\"-Infinity\""),
        (1.5, "1.5"),
    ])
    func `numbers that JSON has not are texts`(number: Double, expected: String) throws {
        let context = try #require(Self.parent)
        let one = SpanRecord(
            context: context, parent: nil, name: "n", kind: .internal, start: 1, end: 2,
            attributes: [.init(name: "a", value: .number(number))], events: [], links: [],
            failed: false)
        let written = text([one])
        #expect(written.contains(#"{"doubleValue":\#(expected)}"#))
        #expect(written.contains(#""status":{"code":1}"#))
    }

    @Test func `a span is never longer than it says`() throws {
        var context = try #require(Self.parent)
        context.state = try #require(
            TraceState(
                (0..<4).map { "k\($0)=" + String(repeating: "\"", count: 100) }
                    .joined(separator: ",")))
        let nasty = String(repeating: "\u{1}", count: SpanRecord.textBytesMax)
        let attributes = (0..<SpanRecord.attributesMax).map { _ in
            SpanRecord.Attribute(
                name: nasty, value: .texts(Array(repeating: nasty, count: SpanRecord.textsMax)))
        }
        let events = (0..<SpanRecord.eventsMax).map { _ in
            SpanRecord.Event(name: nasty, time: .max, attributes: attributes)
        }
        for one in [
            SpanRecord(
                context: context, parent: context, name: nasty, kind: .consumer, start: .max,
                end: .max, attributes: attributes, events: events,
                links: Array(repeating: context, count: SpanRecord.eventsMax), failed: true),
            span("short", at: .max - 1),
        ] {
            let bytes = text([one]).utf8.count - text([]).utf8.count
            #expect(bytes <= one.bytesMax)
        }
    }
}

@Suite struct ExportAnswerTests {
    @Test(arguments: [
        (200, ExportAnswer.accepted(rejected: 0)), (204, .accepted(rejected: 0)),
        (429, .retry(after: 7)), (502, .retry(after: 7)), (503, .retry(after: 7)),
        (504, .retry(after: 7)), (400, .refused), (401, .refused), (404, .refused),
        (413, .refused), (302, .refused), (500, .refused), (501, .refused),
    ])
    func `what may be sent again is what the specification says`(
        status: Int, expected: ExportAnswer
    ) {
        #expect(ExportAnswer(status: status, retryAfter: 7, body: []) == expected)
    }

    @Test(arguments: [
        (#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"x"}}"#, 3),
        (#"{"partialSuccess":{"rejectedSpans":4}}"#, 4), (#"{"partialSuccess":{}}"#, 0),
        ("{}", 0), ("", 0), ("[]", 0), (#"{"partialSuccess":{"rejectedSpans":"-3"}}"#, 0),
        (#"{"partialSuccess":{"rejectedSpans":"many"}}"#, 0), ("\u{0}", 0),
    ])
    func `a partial success says how many were left out`(body: String, rejected: Int) {
        #expect(
            ExportAnswer(status: 200, retryAfter: nil, body: Array(body.utf8))
                == .accepted(rejected: rejected))
    }
}
