import GatewayTestSupport
import WidgetModel

/// A trace collector on another language's HTTP library. It keeps the requests it gets and gives
/// the prescribed answers; the last one is repeated.
final class CollectorProgram {
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

    private static let handler = """
            count = 0
            def do_POST(self):
                body = self.body().decode()
                answer = arguments[min(Handler.count, len(arguments) - 1)]
                Handler.count += 1
                say({"path": self.path, "fields": self.fields(), "body": body, "answer": answer})
                if answer == "silence": time.sleep(3600)
                wait = {"retry_after": "1"} if answer == "429" else {}
                self.answer(int(answer), b"{}", content_type="application/json", **wait)
        """

    private let server: PythonServer
    var port: Int64 { server.port }

    /// - Parameters:
    ///   - answers: Statuses, or `silence`.
    ///   - certificate: The TLS certificate and its key; without it the connection is not
    ///     encrypted.
    init(_ answers: [String] = ["200"], certificate: (file: String, key: String)? = nil) throws {
        server = try PythonServer(Self.handler, certificate: certificate, arguments: answers)
    }

    /// Waits for a request and returns it.
    func request(_ index: Int) throws -> JSONObject {
        guard let request = try server.line(index + 1) else { throw TestFailure("not JSON") }
        return request
    }

    private var requests: [JSONObject] { server.lines }

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
