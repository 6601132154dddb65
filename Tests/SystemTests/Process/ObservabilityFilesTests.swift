import Foundation
import Testing
import WidgetModel

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
