import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// The requests that a trace collector gets, and the limits of its effect on a gateway.
@Suite(.alone) struct CollectorTests {
    @Test func `a collector that fails costs spans and nothing else`() throws {
        for (answers, outcome) in [
            (["503", "429", "200"], "exported"), (["silence"], "undelivered"),
        ] {
            let world = try TracedFixture()
            let collector = try CollectorProgram(answers)
            let timeout = answers == ["silence"] ? "1s" : "5m"
            let gateway = try world.gateway([
                "tracing: { endpoint: 'http://127.0.0.1:\(collector.port)', timeout: \(timeout) }"
            ])
            let game = try GameFixture(gateway)
            let follower = try game.client("follower", ["hero"])
            let stream = game.stream(follower)
            try #require(stream.head()?.status == 200)
            let http = gateway.http()
            var head: UInt64 = 0
            for run in 0..<50 { head = try game.change(http, ["hero"], run: "\(run)") }
            _ = try stream.cursor(covering: head)
            try blockUntil("\(outcome) by \(answers)") {
                try TracedFixture.spans(gateway, outcome) > 0
            }
            if outcome == "exported" {
                // Spans that were not accepted at first arrived later, and once.
                let spans = collector.spans
                #expect(Set(spans.map(\.id)).count == spans.count)
                #expect(collector.requestCount >= 3)
                #expect(try TracedFixture.spans(gateway, "refused") == 0)
            } else {
                #expect(gateway.standardErrorTail.contains("the collector does not accept spans"))
            }
            stream.close()
            #expect(gateway.terminate() == .status(0), "\(answers)")
        }
    }

    private static let hasReader =
        (try? GatewayProcess.run(
            [
                "python3", "-c",
                "from opentelemetry.proto.collector.trace.v1 import trace_service_pb2",
            ], program: "/usr/bin/env"
        ).exit) == .status(0)

    @Test(.enabled(if: hasReader, "python3 with opentelemetry-proto is not installed"))
    func `the specification's own messages are what is sent`() throws {
        let world = try TracedFixture()
        let collector = try CollectorProgram()
        let gateway = try world.gateway([
            "tracing: { endpoint: 'http://127.0.0.1:\(collector.port)' }"
        ])
        let game = try GameFixture(gateway)
        let own = ("traceparent", "00-\(TracedFixture.trace)-\(TracedFixture.parent)-01")
        try TracedFixture.post(game, TracedFixture.hero("one", [own]), [])
        _ = try collector.until("the change") { $0.contains { $0.name == "change" } }
        gateway.terminate()
        let file = world.data + "/body.json"
        // More of them may arrive at any time.
        let bodies = collector.bodies
        let counts = try bodies.map { body in
            try body.write(toFile: file, atomically: true, encoding: .utf8)
            let (exit, output) = try GatewayProcess.run(
                ["python3", "-c", Self.reader, file], program: "/usr/bin/env")
            try #require(exit == .status(0), "\(output)")
            return Int(output.trimmingCharacters(in: .whitespacesAndNewlines))
        }
        #expect(counts == bodies.map { CollectorProgram.spans(of: $0).count })
        #expect(!counts.isEmpty)
    }

    /// Parses a body strictly: unknown names and wrong types are errors. OTLP writes ids in
    /// hexadecimal, where protobuf's JSON has base64.
    private static let reader = """
        import base64, json, sys
        from google.protobuf import json_format
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service
        document = json.load(open(sys.argv[1]))
        def ids(value):
            if isinstance(value, list): return [ids(each) for each in value]
            if not isinstance(value, dict): return value
            return {name: base64.b64encode(bytes.fromhex(each)).decode()
                    if name in ("traceId", "spanId", "parentSpanId") else ids(each)
                    for name, each in value.items()}
        request = json_format.ParseDict(
            ids(document), service.ExportTraceServiceRequest(), ignore_unknown_fields=False)
        spans = [span for resource in request.resource_spans
                 for scope in resource.scope_spans for span in scope.spans]
        for span in spans:
            assert len(span.trace_id) == 16 and len(span.span_id) == 8
            assert len(span.parent_span_id) in (0, 8)
            assert span.kind in (1, 2, 3, 4, 5) and span.name
            assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
        print(len(spans))
        """
}
