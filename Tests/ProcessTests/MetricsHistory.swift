import Foundation
import GatewayTestSupport

/// The history that a Prometheus server would have of a gateway, with one scrape a minute. promtool
/// evaluates which alerts of `Deploy/observability` then fire.
struct MetricsHistory {
    /// The values of samples by name with labels, as on the page.
    typealias Page = [String: Double]

    static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Deploy/observability")
    private static let job = #"job="timeline-gateway",instance="gateway""#

    private var minutes: [Page?] = []
    private var expectations: [(minute: Int, alerts: [String])] = []

    /// Reads a page of metrics.
    ///
    /// promtool's clock begins in 1970 and ours does not, so timestamps become the seconds until
    /// then.
    static func page(_ text: String) -> Page {
        let now = Date().timeIntervalSince1970
        return MetricsPage(text).samples.reduce(into: [:]) { page, sample in
            page[sample.key] = isMoment(sample.key) ? sample.value - now : sample.value
        }
    }

    /// Whether a sample is a timestamp in seconds since 1970.
    private static func isMoment(_ name: String) -> Bool {
        let name = name.prefix { $0 != "{" }
        return name.hasSuffix("_not_after_seconds") || name.hasSuffix("_timestamp_seconds")
    }

    /// Adds this page for a number of scrapes; `nil` stands for a gateway that does not answer.
    mutating func hold(_ page: Page?, minutes count: Int) {
        minutes += Array(repeating: page, count: count)
    }

    /// Adds `difference` to `page` once more each minute: for developments that take hours.
    mutating func grow(_ page: Page, by difference: Page, minutes count: Int) {
        for minute in 1...count {
            minutes.append(
                page.merging(difference) { $0 + $1 * Double(minute) })
        }
    }

    /// Returns the increase of each sample from one page to a later one.
    static func difference(_ before: Page, _ after: Page) -> Page {
        after.reduce(into: [:]) { difference, sample in
            let more = sample.value - (before[sample.key] ?? 0)
            if more != 0 { difference[sample.key] = more }
        }
    }

    /// Expects exactly these alerts to fire at the last minute so far.
    mutating func expect(_ alerts: [String]) {
        expectations.append((minutes.count - 1, alerts))
    }

    /// Lets promtool evaluate the rules; returns its complaints, empty if there are none.
    func faults() throws -> String {
        let directory = try GatewayProcess.temporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let file = directory + "/test.yml"
        try text.write(toFile: file, atomically: true, encoding: .utf8)
        let (exit, output) = try GatewayProcess.run(
            ["bash", "-c", "promtool test rules \"$0\" 2>&1", file], program: "/usr/bin/env",
            seconds: 300)
        return exit == .status(0) ? "" : output
    }

    private var text: String {
        var lines = [
            "rule_files: ['\(Self.folder.path)/alerts.yml']", "evaluation_interval: 1m", "tests:",
            "  - interval: 1m", "    input_series:",
        ]
        let names = Set(minutes.flatMap { $0.map { Array($0.keys) } ?? [] })
        for name in names.sorted() {
            let values = minutes.enumerated().map { minute, page -> String in
                guard let value = page?[name] else { return "_" }
                // A timestamp does not change while the clock advances.
                return "\(Self.isMoment(name) ? value + Double(minute) * 60 : value)"
            }
            lines += Self.series(Self.labelled(name), values)
        }
        lines += Self.series("up{\(Self.job)}", minutes.map { $0 == nil ? "0" : "1" })
        lines.append("    promql_expr_test:")
        for (minute, alerts) in expectations {
            let samples = alerts.map {
                "{labels: '{alertname=\"TimelineGateway\($0)\"}', value: 1}"
            }
            lines += [
                "      - expr: group by (alertname) (ALERTS{alertstate=\"firing\"})",
                "        eval_time: \(minute)m",
                "        exp_samples: [\(samples.joined(separator: ", "))]",
            ]
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func series(_ name: String, _ values: [String]) -> [String] {
        [
            "      - series: '\(name.replacing("'", with: "''"))'",
            "        values: '\(values.joined(separator: " "))'",
        ]
    }

    private static func labelled(_ name: String) -> String {
        guard name.hasSuffix("}") else { return "\(name){\(job)}" }
        return "\(name.dropLast()),\(job)}"
    }
}
