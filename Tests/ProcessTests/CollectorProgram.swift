import Foundation
import GatewayTestSupport
import WidgetModel

/// A trace collector on another language's HTTP library. It keeps the requests it gets and gives
/// the prescribed answers; the last one is repeated.
final class CollectorProgram {
    /// One received span.
    struct Span {
        let object: JSONObject

        func text(_ name: String) -> String { object[name]?.stringValue ?? "" }
        var name: String { text("name") }
        var trace: String { text("traceId") }
        var id: String { text("spanId") }
        var parent: String { text("parentSpanId") }
        var kind: Int64? { object["kind"]?.integerValue }
        var start: UInt64 { UInt64(text("startTimeUnixNano")) ?? 0 }
        var end: UInt64 { UInt64(text("endTimeUnixNano")) ?? 0 }
        var events: [String] {
            (object["events"]?.arrayValue ?? []).compactMap { $0.objectValue?["name"]?.stringValue }
        }
        var links: [String] {
            (object["links"]?.arrayValue ?? []).compactMap {
                $0.objectValue?["spanId"]?.stringValue
            }
        }
        /// The status code; `nil` if the span has none.
        var status: Int64? { object["status"]?.objectValue?["code"]?.integerValue }
        /// The span's attributes, each as the text of its value.
        var attributes: [String: String] { CollectorProgram.attributes(object["attributes"]) }
    }

    private static let script = """
        import http.server, json, ssl, sys, time
        script = sys.argv[3:]
        count = 0
        class Collector(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def do_POST(self):
                global count
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                answer = script[min(count, len(script) - 1)]
                count += 1
                fields = {name.lower(): value for name, value in self.headers.items()}
                print(json.dumps({"path": self.path, "fields": fields, "body": body,
                                  "answer": answer}), flush=True)
                if answer == "silence": time.sleep(3600)
                self.send_response(int(answer))
                content = b"{}"
                self.send_header("content-type", "application/json")
                if answer == "429": self.send_header("retry-after", "1")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            def log_message(self, *arguments): pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
        server.daemon_threads = True
        if sys.argv[1]:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(sys.argv[1], sys.argv[2])
            server.socket = context.wrap_socket(server.socket, server_side=True)
        print(json.dumps({"port": server.server_address[1]}), flush=True)
        server.serve_forever()
        """

    let port: Int64
    private let program: TestProgram

    /// - Parameters:
    ///   - answers: Statuses, or `silence`.
    ///   - certificate: The TLS certificate and its key; without it the connection is not
    ///     encrypted.
    init(_ answers: [String] = ["200"], certificate: (String, key: String)? = nil) throws {
        let file = try GatewayProcess.temporaryDirectory() + "/collector.py"
        try Self.script.write(toFile: file, atomically: true, encoding: .utf8)
        program = try TestProgram(
            "/usr/bin/python3", [file, certificate?.0 ?? "", certificate?.key ?? ""] + answers)
        guard let port = try program.json(line: 0)?["port"]?.integerValue else {
            throw TestFailure("no collector: \(program.standardErrorTail)")
        }
        self.port = port
    }

    /// Waits for a request and returns it.
    func request(_ index: Int) throws -> JSONObject {
        guard let request = try program.json(line: index + 1) else {
            throw TestFailure("not JSON: \(program.output)")
        }
        return request
    }

    /// The requests so far.
    private var requests: [JSONObject] {
        // The last line may be incomplete.
        let lines = program.output.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.dropFirst().dropLast().compactMap {
            try? JSONValue(parsing: Array($0.utf8)).objectValue
        }
    }

    /// The number of requests so far.
    var requestCount: Int { requests.count }

    /// The bodies of the requests answered with 200.
    var bodies: [String] {
        requests.filter { $0["answer"] == "200" }.compactMap { $0["body"]?.stringValue }
    }

    /// The spans of the requests answered with 200.
    var spans: [Span] {
        bodies.flatMap { Self.spans(of: $0) }
    }

    /// Waits until a condition holds for the accepted spans; returns them.
    func until(_ what: String, _ holds: ([Span]) -> Bool) throws -> [Span] {
        var found: [Span] = []
        try blockUntil(what, details: { "\(spans.map { ($0.name, $0.attributes) })" }) {
            found = spans
            return holds(found)
        }
        return found
    }

    /// Returns the spans of a request.
    static func spans(of body: String) -> [Span] {
        let resources =
            (try? JSONValue(parsing: Array(body.utf8)))?.objectValue?["resourceSpans"]?.arrayValue
        let scopes = (resources ?? []).flatMap { $0.objectValue?["scopeSpans"]?.arrayValue ?? [] }
        return scopes.flatMap { $0.objectValue?["spans"]?.arrayValue ?? [] }
            .compactMap { $0.objectValue.map(Span.init) }
    }

    /// Returns attributes as encoded in OTLP, each as the text of its value.
    static func attributes(_ list: JSONValue?) -> [String: String] {
        var attributes: [String: String] = [:]
        for entry in list?.arrayValue ?? [] {
            guard let name = entry.objectValue?["key"]?.stringValue,
                let value = entry.objectValue?["value"]?.objectValue?.members.first?.value
            else { continue }
            attributes[name] = value.stringValue ?? value.text
        }
        return attributes
    }
}
