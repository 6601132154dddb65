import Foundation
import GatewayTestSupport
import Testing

/// Each alert of `Deploy/observability` fires for its own cause, and no other alert fires with
/// it. The series are written by hand, a sample a minute, and promtool evaluates them.
@Suite(.alone) struct AlertTests {
    static let folder = URL(
        filePath: #filePath.replacing(
            "Tests/SystemTests/Process/AlertTests.swift", with: "Deploy/observability"))

    /// Series, and the alerts that fire with them after some minutes.
    private struct Case {
        let alerts: [String]
        let minutes: Int
        /// Names with labels, without the usual prefix, and values in promtool's notation.
        let series: [(name: String, values: String)]

        init(_ alert: String?, after minutes: Int, _ series: (String, String)...) {
            (alerts, self.minutes) = (alert.map { [$0] } ?? [], minutes)
            self.series = series.map { (name: $0.0, values: $0.1) }
        }
    }

    private static let cases = [freshness, works, upkeep].flatMap { $0 }

    private static let works: [Case] = [
        Case("Down", after: 12, ("up", "1x5 0x10")),
        Case(
            "NoProgress", after: 15, ("shard_position_lowest", "10x20"),
            ("log_head", "10x5 11x20")),
        Case("WritesFail", after: 10, ("store_commit_failures_total", "0x5 3x10")),
        Case("WritesFail", after: 10, ("store_jobs_refused_total", "0x5 3x10")),
        Case("CursorsAhead", after: 10, ("cursors_ahead_total", "0x5 1x10")),
        Case(
            "VersionWindowShort", after: 30, ("version_keys{app=\"a\"}", "80x40"),
            ("version_keys_max{app=\"a\"}", "100x40"),
            ("version_floor_distance{app=\"a\"}", "500x40"), ("log_head", "0+100x40")),
        Case(
            "StreamsStall", after: 40, ("streams_stalled_total", "0+1x40"),
            ("streams_opened_total", "0+1x40")),
        Case(
            "StreamsStall", after: 10, ("streams_lagging", "20x20"), ("streams", "100x20")),
        Case(
            "ChangesUnmatched", after: 30, ("changes_accepted_total", "0+10x40"),
            ("changes_unmatched_total", "0+5x40")),
        Case(
            "ChangesBroad", after: 30, ("changes_accepted_total", "0+10x40"),
            ("changes_broad_total", "0+2x40")),
        Case(
            "PushStopped", after: 10,
            ("push_events_total{event=\"topic-refused\"}", "0x5 1x10")),
        Case(
            "PushEvents", after: 10,
            ("push_events_total{event=\"webhook-disabled\"}", "0x5 1x10")),
        Case(
            "PushEvents", after: 10,
            ("push_events_total{event=\"content-failing\"}", "0x5 1x10")),
        Case(
            "PushEvents", after: 10,
            ("push_events_total{event=\"subscription-refused\"}", "0x5 1x10")),
        Case(
            "PushesFail", after: 40,
            ("pushes_total{channel=\"webhook\",outcome=\"retry\",reason=\"x\"}", "0+5x40"),
            ("pushes_total{channel=\"webhook\",outcome=\"sent\"}", "0+5x40")),
        Case(
            "PushBudgetSpent", after: 45, ("push_standings{state=\"withheld\"}", "20x50"),
            ("push_standings{state=\"current\"}", "20x50")),
        Case("ConfigurationRefused", after: 10, refused),
    ]

    /// What is late, of a hundred observations a minute.
    private static let freshness: [Case] = [
        late("sent", of: "2.5", inTime: 100, nil),
        late("sent", of: "2.5", inTime: 98, "NotificationsLateForDays"),
        late("sent", of: "2.5", inTime: 70, after: 50, "NotificationsLate"),
        late("confirmed", of: "60", inTime: 92, "RebuildsLateForDays"),
        late("confirmed", of: "60", inTime: 10, after: 50, "RebuildsLate"),
    ]

    /// A small share is noticed only after an hour.
    private static func late(
        _ what: String, of bound: String, inTime: Int, after minutes: Int = 200,
        _ alert: String?
    ) -> Case {
        let name = "freshness_\(what)_seconds"
        let labels = "channel=\"stream\",kind=\"detail\""
        return Case(
            alert, after: minutes, ("\(name)_count{\(labels)}", "0+100x200"),
            ("\(name)_bucket{\(labels),le=\"\(bound)\"}", "0+\(inTime)x200"))
    }

    private static let refused = ("configuration_reloads_total{outcome=\"refused\"}", "0x5 1x10")

    /// Times in seconds since the first sample.
    private static let upkeep: [Case] = [
        Case("CertificateEnds", after: 70, (server, "\(2 * day)x80")),
        Case("CertificateEndsSoon", after: 70, (server, "\(10 * day)x80")),
        Case(nil, after: 70, (server, "\(60 * day)x80"), (push, "\(60 * day)x80")),
        Case("PushCertificateEnds", after: 70, (push, "\(2 * day)x80")),
        Case("PushCertificateEndsSoon", after: 70, (push, "\(10 * day)x80")),
        Case("SigningKeyOld", after: 70, ("signing_key_age_seconds", "\(181 * day)x80")),
        Case(nil, after: 10, (up, "1x20"), (confirmed, "0+60x20"), (run, "0+60x20")),
        Case(nil, after: 10, ("leads", "1x20")),
        Case("NobodyLeads", after: 10, ("leads", "0x20")),
        Case("LeaderNotReached", after: 10, ("cluster_leader_reached", "0x20")),
        Case(nil, after: 10, ("cluster_leader_reached", "1x20")),
        Case("CanaryLost", after: 10, (up, "0x20"), (confirmed, "0+60x20")),
        Case("CanaryLost", after: 10, (up, "1x20"), (confirmed, "0x20")),
        Case(
            "AuditBelowObjective", after: 10, (reliability, "0.99x20"), (objective, "0.999x20"),
            (run, "0+60x20")),
        Case(
            "AuditBelowObjective", after: 10, (reliability, "1x20"), (objective, "0.999x20"),
            (run, "0x20")),
    ]

    private static let day = 86_400
    private static let server = "tls_certificate_not_after_seconds"
    private static let push = "apns_certificate_not_after_seconds{app=\"a\"}"
    private static let up = "timeline_canary_up{app=\"a\"}"
    private static let confirmed = "timeline_canary_last_confirmed_timestamp_seconds{app=\"a\"}"
    private static let reliability = "timeline_audit_reliability_ratio{app=\"a\"}"
    private static let objective = "timeline_audit_objective_ratio{app=\"a\"}"
    private static let run = "timeline_audit_last_run_timestamp_seconds{app=\"a\"}"

    /// The lines of a series in a file of promtool.
    private static func lines(_ name: String, _ values: String) -> [String] {
        let job = "job=\"timeline-gateway\",instance=\"gateway\""
        let isWhole = name == "up" || name.hasPrefix("timeline_")
        let full = (isWhole ? "" : "timeline_gateway_") + name
        let series = full.hasSuffix("}") ? "\(full.dropLast()),\(job)}" : "\(full){\(job)}"
        return ["      - series: '\(series)'", "        values: '\(values)'"]
    }

    private static func lines(_ one: Case) -> [String] {
        let isUp = !one.series.contains { $0.name == "up" }
        let series = one.series + (isUp ? [(name: "up", values: "1x\(one.minutes)")] : [])
        let fires = one.alerts.map {
            "{labels: '{alertname=\"TimelineGateway\($0)\"}', value: 1}"
        }
        return ["  - interval: 1m", "    input_series:"]
            + series.flatMap { lines($0.name, $0.values) }
            + [
                "    promql_expr_test:",
                "      - expr: group by (alertname) (ALERTS{alertstate=\"firing\"})",
                "        eval_time: \(one.minutes)m",
                "        exp_samples: [\(fires.joined(separator: ", "))]",
            ]
    }

    private static func promtool(_ arguments: String...) throws {
        let (exit, output) = try GatewayProcess.run(
            ["bash", "-c", "promtool \"$@\" 2>&1", "promtool"] + arguments,
            program: "/usr/bin/env")
        #expect(exit == .status(0), "\(output)")
    }

    @Test func `the files are right`() throws {
        try Self.promtool("check", "config", Self.folder.path + "/prometheus.yml")
    }

    @Test func `every alert fires for its cause, and no other does`() throws {
        let alerts = try String(
            contentsOf: Self.folder.appending(path: "alerts.yml"), encoding: .utf8
        ).matches(of: /- alert: TimelineGateway(\w+)/).map { String($0.1) }
        #expect(Set(alerts) == Set(Self.cases.flatMap(\.alerts)))
        let lines = [
            "rule_files: ['\(Self.folder.path)/alerts.yml']", "evaluation_interval: 1m",
            "tests:",
        ]
        let file = try GatewayProcess.temporaryDirectory() + "/test.yml"
        try (lines + Self.cases.flatMap { Self.lines($0) }).joined(separator: "\n")
            .write(toFile: file, atomically: true, encoding: .utf8)
        try Self.promtool("test", "rules", file)
    }
}
