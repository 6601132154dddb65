import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// The pages of a running gateway for a Prometheus server, an orchestrator's probes and an
/// operator.
@Suite(.alone) struct MetricsTests {
    /// Runs a program on a temporary file with this text.
    private static func run(_ arguments: [String], on text: String) throws -> (Int32, String) {
        let directory = try GatewayProcess.temporaryDirectory()
        let file = directory + "/page"
        try text.write(toFile: file, atomically: true, encoding: .utf8)
        let (exit, output) = try GatewayProcess.run(
            ["bash", "-c", "\"$@\" 2>&1 <\"$0\"", file] + arguments, program: "/usr/bin/env")
        guard case .status(let status) = exit else { throw TestFailure(output) }
        return (status, output)
    }

    private static let hasReader =
        (try? GatewayProcess.run(
            ["python3", "-c", "import prometheus_client"], program: "/usr/bin/env"
        )
        .exit) == .status(0)

    /// Runs `body` with a gateway that was used in every way counted with a label.
    private static func used(_ body: (_ admin: TestHTTP) throws -> Void) throws {
        let gateway = try LocalGateway()
        let admin = gateway.adminHTTP()
        let game = try GameFixture(gateway)
        let client = try game.client("client", ["a"])
        try game.change(gateway.http(), ["a", "b"], run: "one")
        _ = try game.poll(client, since: client.cursor)
        try body(admin)
    }

    @Test func `promtool finds no fault with the page, which has every metric there is`() throws {
        try Self.used { admin in
            let page = #filePath.replacing(
                "Tests/SystemTests/Process/MetricsTests.swift", with: "Deploy/metrics.md")
            let documented = try String(contentsOfFile: page, encoding: .utf8)
                .split(separator: "\n").filter { $0.hasPrefix("| `") }
                .compactMap { $0.split(separator: "`").dropFirst().first.map(String.init) }
            // The figures of event loops are a moment old.
            var answer = try admin.request("GET", "/metrics")
            try blockUntil("every metric", details: { answer.text }) {
                answer = try admin.request("GET", "/metrics")
                let present = answer.text.split(separator: "\n")
                    .filter { $0.hasPrefix("# TYPE ") }
                    .map { String($0.split(separator: " ")[2]) }
                return present == documented
            }
            #expect(answer.header("content-type") == "text/plain; version=0.0.4; charset=utf-8")
            #expect(answer.text.contains("timeline_gateway_changes_accepted_total 2\n"))
            let (status, output) = try Self.run(["promtool", "check", "metrics"], on: answer.text)
            #expect(status == 0 && output.isEmpty, "\(output)")
        }
    }

    @Test(.enabled(if: hasReader, "python3 with prometheus_client is not installed"))
    func `a strict reader of OpenMetrics takes the page`() throws {
        try Self.used { admin in
            let answer = try admin.request(
                "GET", "/metrics",
                headers: [("Accept", "application/openmetrics-text;version=1.0.0")])
            #expect(
                answer.header("content-type")?.hasPrefix(
                    "application/openmetrics-text; version=1.0.0; charset=utf-8") == true)
            let script = """
                import sys
                from prometheus_client.openmetrics.parser import text_string_to_metric_families
                families = list(text_string_to_metric_families(sys.stdin.read()))
                print(len(families), sum(len(family.samples) for family in families))
                """
            let (status, output) = try Self.run(["python3", "-c", script], on: answer.text)
            #expect(status == 0, "\(output)")
            let families = answer.text.split(separator: "\n").count { $0.hasPrefix("# TYPE ") }
            #expect(output.hasPrefix("\(families) "), "\(output)")
        }
    }

    @Test func `the process figures are those of the kernel`() throws {
        try Self.used { admin in
            let page = try admin.request("GET", "/metrics").text
            func value(_ name: String) throws -> Double {
                let line = page.split(separator: "\n").first { $0.hasPrefix(name + " ") }
                let text = try #require(line?.split(separator: " ").last)
                return try #require(Double(text))
            }
            let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
            let resident = try #require(
                status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }?
                    .split(whereSeparator: { $0 == " " || $0 == "\t" })[1])
            let bytes = try #require(Double(resident)) * 1024
            #expect(abs(try value("process_resident_memory_bytes") - bytes) < bytes / 2)
            let age = Date().timeIntervalSince1970 - (try value("process_start_time_seconds"))
            #expect(age > 0)
            #expect(try value("process_cpu_seconds_total") > 0)
            #expect(try value("process_open_fds") > 5)
            #expect(try value("process_max_fds") >= value("process_open_fds"))
        }
    }

    @Test func `probes have a port of their own, and say what stops`() throws {
        let gateway = try LocalGateway(environment: ["TIMELINE_GATEWAY_PROBES": "127.0.0.1:0"])
        let probes = TestHTTP(url: "http://127.0.0.1:\(gateway.probePort)", ca: gateway.ca)
        let live = try probes.request("GET", "/livez")
        #expect(live.status == 200 && live.text == #"{"status":"live","failing":[]}"#)
        let ready = try probes.request("GET", "/readyz")
        #expect(ready.status == 200 && ready.text == #"{"status":"ready","failing":[]}"#)
        #expect(try probes.request("GET", "/metrics").status == 404)
        #expect(try probes.request("GET", "/version").status == 404)
    }
}

/// Rules and dashboard use only metrics and labels that exist.
@Suite(.alone) struct ObservabilityFilesTests {
    /// The labels that Prometheus adds, and the label of buckets.
    private static let common: Set = ["job", "instance", "le"]

    /// Returns the labels of each metric in `Deploy/metrics.md`; each series of a histogram
    /// separately.
    private static func documented() throws -> [String: Set<String>] {
        let file = AlertTests.folder.deletingLastPathComponent()
            .appending(path: "metrics.md")
        var metrics: [String: Set<String>] = [:]
        for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
        where line.hasPrefix("| `") {
            let cells = line.split(separator: "|").map(String.init)
            let labels = Set(cells[2].matches(of: /`(\w+)`/).map { String($0.1) })
            let name = cells[0].filter { $0 != "`" && $0 != " " }
            let suffixes = cells[1].contains("histogram") ? ["_bucket", "_sum", "_count"] : [""]
            for suffix in suffixes { metrics[name + suffix] = labels }
        }
        return metrics
    }

    /// Returns the metrics and labels of a query that do not exist.
    private static func unknown(
        _ query: String, _ metrics: [String: Set<String>], records: Set<String>
    ) -> [String] {
        var faults: [String] = []
        var mayBe = common
        let names = /\b((?:timeline_gateway|process)[a-z0-9_:]*)(\{[^}]*\})?/
        for match in query.matches(of: names) {
            let name = String(match.1)
            guard let labels = metrics[name] ?? (records.contains(name) ? [] : nil) else {
                faults.append(name)
                continue
            }
            mayBe.formUnion(labels)
            for label in (match.2 ?? "").matches(of: /(\w+) *(?:=~|!~|!=|=)/)
            where !common.contains(String(label.1)) && !labels.contains(String(label.1)) {
                faults.append("\(name){\(label.1)}")
            }
        }
        for clause in query.matches(of: /\b(?:by|without|on|ignoring) *\(([^)]*)\)/) {
            for label in clause.1.matches(of: /\w+/) where !mayBe.contains(String(label.0)) {
                faults.append("by \(label.0): \(query)")
            }
        }
        return faults
    }

    @Test func `a query for what is not there is noticed`() throws {
        let metrics = try Self.documented()
        for query in [
            "timeline_gateway_nothing", "rate(timeline_gateway_freshness_sent_seconds[5m])",
            "timeline_gateway_streams{kind=\"x\"}",
            "sum by (kind) (timeline_gateway_streams)",
        ] {
            #expect(!Self.unknown(query, metrics, records: []).isEmpty, "\(query)")
        }
    }

    @Test func `rules ask for what there is, and say what to do`() throws {
        let metrics = try Self.documented()
        let file = AlertTests.folder.appending(path: "alerts.yml")
        let text = try String(contentsOf: file, encoding: .utf8)
        let rules = text.split(separator: "      - ").dropFirst().map(String.init)
        let records = Set(text.matches(of: /- record: (\S+)/).map { String($0.1) })
        for rule in rules where rule.hasPrefix("record: ") || rule.hasPrefix("alert: ") {
            let query = rule.matches(of: /expr: (?:\|\n)?(.+\n(?: {10}.*\n)*)/).map { String($0.1) }
            #expect(query.count == 1, "\(rule)")
            #expect(Self.unknown(query.joined(), metrics, records: records) == [], "\(rule)")
            guard rule.hasPrefix("alert: ") else { continue }
            #expect(rule.contains(/severity: (critical|warning) \}\n/), "\(rule)")
            #expect(rule.contains("summary: ") && rule.contains("description: "), "\(rule)")
        }
    }

    @Test func `the dashboard asks for what there is`() throws {
        let metrics = try Self.documented()
        let file = AlertTests.folder.appending(path: "grafana/timeline-gateway.json")
        let board = try JSONValue(parsing: [UInt8](Data(contentsOf: file))).objectValue
        let panels = board?["panels"]?.arrayValue?.compactMap(\.objectValue) ?? []
        var asked = 0
        for panel in panels where panel["type"] != "row" {
            let title = panel["title"]?.stringValue ?? ""
            #expect(panel["description"]?.stringValue?.isEmpty == false, "\(title)")
            for target in panel["targets"]?.arrayValue ?? [] {
                let query = try #require(target.objectValue?["expr"]?.stringValue)
                #expect(Self.unknown(query, metrics, records: []) == [], "\(title)")
                asked += 1
            }
        }
        #expect(asked > 30)
    }
}
