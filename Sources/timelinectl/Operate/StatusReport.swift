import GatewayDocuments
import WidgetModel

/// The status of a gateway as lines for a terminal.
struct StatusReport {
    let overview: Overview
    /// The parts that change less often than every second; absent if they were not requested.
    var system: SystemStatus?
    var apps: [AppStatus] = []
    let palette: Palette

    /// Whether the gateway is ready and without problems.
    var isWell: Bool { overview.ready && overview.troubles.isEmpty }

    /// All parts, separated by blank lines.
    var lines: [String] {
        [heading + wrong, freshness, work, appLines, keyLines].filter { !$0.isEmpty }
            .joined(separator: [""]).map { $0 }
    }

    // MARK: Parts

    private var heading: [String] {
        let verdict =
            !overview.ready
            ? palette.bad("NOT READY")
            : isWell ? palette.good("ready") : palette.poor("ready, with problems")
        var parts = ["gateway \(verdict)"]
        if let system {
            let version = system.version.members.first { $0.name == "version" }
            if let version { parts.append(TextBlock.line("version \(version.value)")) }
            parts.append(TextBlock.line("since \(system.node.started)"))
            parts.append(TextBlock.line("on \(system.node.listen)"))
        }
        if let cluster = overview.cluster {
            let leader = cluster.leader.map { "follows \(TextBlock.line($0))" } ?? "has no leader"
            parts.append(cluster.leads ? "leads the cluster" : leader)
        }
        return [parts.joined(separator: ", ")]
    }

    private var wrong: [String] {
        overview.troubles.flatMap { trouble in
            let isCritical = trouble.level == "critical"
            let mark = isCritical ? palette.bad("critical") : palette.poor("warning ")
            return [
                "  \(mark)  " + TextBlock.line(trouble.what),
                "            " + TextBlock.line(trouble.remedy),
            ]
        }
    }

    private var freshness: [String] {
        let heading = "freshness of the last \(overview.recentSeconds) s"
        // Every event loop decides on each change.
        var all: [(name: String, quantiles: Quantiles)] = [
            ("  decided by each event loop", overview.decided)
        ]
        all += overview.sent.members.map { ("  sent by \($0.name)", $0.value) }
        all += overview.confirmed.members.map { ("  confirmed by \($0.name)", $0.value) }
        all.append(("  on disk", overview.commit))
        let rows = all.filter { $0.quantiles.count > 0 }.map { name, quantiles in
            [
                name, "\(quantiles.count)", Self.seconds(quantiles.p50),
                Self.seconds(quantiles.p99),
            ]
        }
        guard !rows.isEmpty else { return [heading + ": no change"] }
        return TextBlock.columns([[heading, "COUNT", "P50", "P99"]] + rows)
    }

    private var work: [String] {
        let (rates, log) = (overview.rates, overview.log)
        let work = [
            ("changes", rates.changes), ("deliveries", rates.deliveries), ("polls", rates.polls),
            ("acknowledgements", rates.acknowledgements), ("pushes", rates.pushes),
        ]
        var lines = [
            "streams   \(overview.streams) open, \(overview.lagging) lagging, "
                + "of \(overview.clients) clients",
            "work      "
                + work.map { "\(Self.number($0.1))/s \($0.0)" }.joined(separator: ", "),
            "log       entries \(log.floor &+ 1) to \(log.head), "
                + "applied up to \(log.applied), \(log.waitingWrites) writes waiting, "
                + Progress.bytes(log.databaseBytes + log.walBytes),
        ]
        if let pushes = overview.standings {
            lines.append(
                "pushes    \(pushes.confirmed) confirmed, \(pushes.told) delivered, "
                    + "\(pushes.underWay) in flight, \(pushes.withheld) withheld, "
                    + "\(pushes.waiting) waiting, \(pushes.unreachable) unreachable")
        }
        return lines
    }

    private var appLines: [String] {
        guard !apps.isEmpty else { return [] }
        let rows = apps.map { app in
            func sum(_ count: KeyPath<AppStatus.Kind, Int>) -> Int {
                app.kinds.reduce(0) { $0 &+ $1[keyPath: count] }
            }
            let looked = sum(\.looked)
            return [
                app.app, "\(app.kinds.count)", "\(app.clients)", "\(sum(\.widgets))",
                looked == 0 ? "-" : "\(sum(\.stale)) of \(looked) checked",
            ]
        }
        let lacking = apps.flatMap { app in
            app.kinds.compactMap { kind in
                kind.clientsLacking.map { count in
                    TextBlock.line(
                        "  \(kind.kind): no change affects \(count) of its clients, which lack "
                            + (kind.lacking ?? []).joined(separator: ", "))
                }
            }
        }
        return TextBlock.columns([["APP", "KINDS", "CLIENTS", "WIDGETS", "STALE"]] + rows)
            + lacking
    }

    private var keyLines: [String] {
        guard let system, !system.keys.isEmpty else { return [] }
        let rows = system.keys.map { key in
            let time =
                key.since.map { "since \($0)" } ?? key.until.map { "until \($0)" } ?? ""
            return [key.use, key.kid, key.algorithm, key.state, time]
        }
        return TextBlock.columns([["KEYS OF", "KID", "ALGORITHM", "STATE", ""]] + rows)
            + ["certificate expires \(system.certificateEnds)"]
    }

    // MARK: Words

    /// Returns `3 ms`, `1.2 s` or `-`.
    static func seconds(_ seconds: Double?) -> String {
        guard let seconds else { return "-" }
        if seconds < 0.001 { return "<1 ms" }
        if seconds < 1 { return "\(Int(seconds * 1000)) ms" }
        return "\(Double(Int(min(seconds, 1e9) * 10)) / 10) s"
    }

    private static func number(_ number: Double) -> String {
        number >= 100 ? "\(Int(min(number, 1e15)))" : "\(Double(Int(number * 10)) / 10)"
    }
}

/// The highlighting of words; none without a terminal or where NO_COLOR is set (no-color.org).
struct Palette: Sendable, Equatable {
    var hasColors: Bool

    func good(_ text: String) -> String { colored(text, "32") }
    func poor(_ text: String) -> String { colored(text, "33") }
    func bad(_ text: String) -> String { colored(text, "1;31") }

    private func colored(_ text: String, _ code: String) -> String {
        hasColors ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }
}
