import WidgetModel

/// How a gateway does, in lines for a terminal.
struct StatusReport {
    let overview: JSONObject
    /// What does not change every second; empty where it was not asked for.
    var system: JSONObject = [:]
    var apps: [JSONValue] = []
    let palette: Palette

    /// Whether it is ready and nothing is wrong.
    var isWell: Bool { isReady && troubles.isEmpty }

    private var isReady: Bool { overview["ready"] == true }
    private var troubles: [JSONObject] {
        (overview["troubles"]?.arrayValue ?? []).compactMap(\.objectValue)
    }

    /// Everything, with a line between the parts.
    var lines: [String] {
        [heading + wrong, freshness, work, appLines, keyLines].filter { !$0.isEmpty }
            .joined(separator: [""]).map { $0 }
    }

    // MARK: Parts

    private var heading: [String] {
        let verdict =
            !isReady
            ? palette.bad("NOT READY")
            : troubles.isEmpty ? palette.good("ready") : palette.poor("ready, but see below")
        let node = system["node"]?.objectValue ?? [:]
        var parts: [String] = []
        if let version = system["version"]?.objectValue?["version"]?.stringValue {
            parts.append("version \(version)")
        }
        if let started = node["started"]?.stringValue { parts.append("since \(started)") }
        if let listen = node["listen"]?.stringValue { parts.append("on \(listen)") }
        return [(["gateway \(verdict)"] + parts.map(TextBlock.line)).joined(separator: ", ")]
    }

    private var wrong: [String] {
        troubles.flatMap { trouble in
            let isCritical = trouble["level"] == "critical"
            let mark = isCritical ? palette.bad("critical") : palette.poor("warning ")
            return [
                "  \(mark)  " + TextBlock.line(trouble["what"]?.stringValue ?? ""),
                "            " + TextBlock.line(trouble["remedy"]?.stringValue ?? ""),
            ]
        }
    }

    private var freshness: [String] {
        var rows = [["freshness", "CHANGES", "P50", "P99"]]
        func add(_ name: String, _ value: JSONValue?) {
            guard let counts = value?.objectValue,
                let count = counts["count"]?.integerValue, count > 0
            else { return }
            rows.append([
                name, "\(count)", Self.seconds(counts["p50"]), Self.seconds(counts["p99"]),
            ])
        }
        add("  decided", overview["decided"])
        for (title, name) in [("sent by", "sent"), ("confirmed by", "confirmed")] {
            for member in overview[name]?.objectValue?.members ?? [] {
                add("  \(title) \(member.name)", member.value)
            }
        }
        add("  on disk", overview["commit"])
        let seconds = overview["recentSeconds"]?.integerValue ?? 0
        rows[0][0] = "freshness of the last \(seconds) s"
        guard rows.count > 1 else { return [rows[0][0] + ": no change"] }
        return TextBlock.columns(rows)
    }

    private var work: [String] {
        let rates = overview["rates"]?.objectValue ?? [:]
        let log = overview["log"]?.objectValue ?? [:]
        func rate(_ name: String) -> String { "\(Self.number(rates[name]))/s \(name)" }
        func count(_ object: JSONObject, _ name: String) -> Int64 {
            object[name]?.integerValue ?? 0
        }
        var lines = [
            "streams   \(count(overview, "streams")) open, \(count(overview, "lagging")) lagging, "
                + "of \(count(overview, "clients")) clients",
            "work      "
                + ["changes", "deliveries", "polls", "acknowledgements", "pushes"].map(rate)
                .joined(separator: ", "),
            "log       \(count(log, "floor"))..\(count(log, "head")), "
                + "applied up to \(count(log, "applied")), \(count(log, "waitingWrites")) waiting, "
                + ByteProgress.text(count(log, "databaseBytes") + count(log, "walBytes")),
        ]
        if let standings = overview["standings"]?.objectValue, !standings.members.isEmpty {
            lines.append(
                "pushes    "
                    + standings.members.map { "\($0.value.integerValue ?? 0) \($0.name)" }
                    .joined(separator: ", "))
        }
        return lines
    }

    private var appLines: [String] {
        guard !apps.isEmpty else { return [] }
        let rows = apps.map { app in
            let app = app.objectValue ?? [:]
            let kinds = (app["kinds"]?.arrayValue ?? []).compactMap(\.objectValue)
            func sum(_ name: String) -> Int64 {
                kinds.reduce(0) { $0 &+ ($1[name]?.integerValue ?? 0) }
            }
            let looked = sum("looked")
            return [
                app["app"]?.stringValue ?? "-", "\(kinds.count)",
                "\(app["clients"]?.integerValue ?? 0)", "\(sum("widgets"))",
                looked == 0 ? "-" : "\(sum("stale")) of \(looked) looked at",
            ]
        }
        return TextBlock.columns([["APP", "KINDS", "CLIENTS", "WIDGETS", "STALE"]] + rows)
    }

    private var keyLines: [String] {
        let keys = (system["keys"]?.arrayValue ?? []).compactMap(\.objectValue)
        guard !keys.isEmpty else { return [] }
        let rows = keys.map { key in
            let time =
                key["since"]?.stringValue.map { "since \($0)" }
                ?? key["until"]?.stringValue.map { "until \($0)" } ?? ""
            return [
                key["use"]?.stringValue ?? "-", key["kid"]?.stringValue ?? "-",
                key["algorithm"]?.stringValue ?? "-", key["state"]?.stringValue ?? "-", time,
            ]
        }
        let ends = system["certificateEnds"]?.stringValue ?? "-"
        return TextBlock.columns([["KEYS OF", "KID", "ALGORITHM", "STATE", ""]] + rows)
            + ["certificate ends \(ends)"]
    }

    // MARK: Words

    /// `3 ms`, `1.2 s`, `-`.
    static func seconds(_ value: JSONValue?) -> String {
        guard let seconds = Self.double(value) else { return "-" }
        if seconds < 0.001 { return "<1 ms" }
        if seconds < 1 { return "\(Int(seconds * 1000)) ms" }
        return "\(Double(Int(min(seconds, 1e9) * 10)) / 10) s"
    }

    private static func number(_ value: JSONValue?) -> String {
        let number = double(value) ?? 0
        return number >= 100 ? "\(Int(min(number, 1e15)))" : "\(Double(Int(number * 10)) / 10)"
    }

    private static func double(_ value: JSONValue?) -> Double? {
        switch value {
        case .integer(let number): Double(number)
        case .number(let number): number
        default: nil
        }
    }
}

/// How words are set off; not at all without a terminal, or where NO_COLOR is set (no-color.org).
struct Palette: Sendable, Equatable {
    var hasColors: Bool

    func good(_ text: String) -> String { colored(text, "32") }
    func poor(_ text: String) -> String { colored(text, "33") }
    func bad(_ text: String) -> String { colored(text, "1;31") }

    private func colored(_ text: String, _ code: String) -> String {
        hasColors ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }
}
