import WidgetModel

/// Explanations for people.
enum ExplanationText {
    // MARK: Changes

    /// What the gateway says of a change of the log, or of some that are not made.
    static func change(_ answer: JSONValue) -> String {
        let events = answer.objectValue?["events"]?.arrayValue ?? [answer]
        return events.map { one($0.objectValue ?? [:]).joined(separator: "\n") }
            .joined(separator: "\n\n")
    }

    private static func one(_ change: JSONObject) -> [String] {
        var head = change["sequence"]?.integerValue.map { "change \($0)  " } ?? "not posted  "
        head += text(change["time"]).map { "\($0)  " } ?? ""
        head += [text(change["entity"]), text(change["entityID"]), text(change["operation"])]
            .compactMap { $0 }.joined(separator: " ")
        if change["broad"] == true { head += "  broad" }
        if change["unmatched"] == true { head += "  hits no rule" }
        if change["catalogOfThen"] == false { head += "  by the present catalog" }
        var lines = [TextBlock.line(head)]
        if let hint = text(change["hint"]) { lines.append("  " + TextBlock.line(hint)) }
        var rules: [[String]] = []
        for rule in change["rules"]?.arrayValue ?? [] {
            let rule = rule.objectValue ?? [:]
            var verdict = text(rule["verdict"]) ?? ""
            if let attribute = text(rule["attribute"]) { verdict += " \(attribute)" }
            rules.append([
                verdict, text(rule["target"]) ?? "", text(rule["kind"]) ?? "",
                text(rule["place"]) ?? "", keys(rule),
            ])
        }
        lines += TextBlock.columns(rules, indent: 2)
        let holders = change["holders"]?.objectValue ?? [:]
        lines.append(
            "holders \(number(holders["count"])): widgets \(number(holders["widgets"])), "
                + "clients \(number(holders["clients"]))")
        var who: [[String]] = []
        for name in ["kinds", "platforms", "channels"] {
            let counts = counts(holders[name])
            if !counts.isEmpty { who.append([name, counts]) }
        }
        lines += TextBlock.columns(who, indent: 2)
        return lines + outcomes(change["outcomes"]?.objectValue ?? [:])
    }

    private static func keys(_ rule: JSONObject) -> String {
        let keys = (rule["keys"]?.arrayValue ?? []).map { key in
            (key.arrayValue ?? []).map { position in
                let position = position.objectValue ?? [:]
                let value =
                    text(position["value"]) ?? (position["unset"] == true ? "(unset)" : "(missing)")
                return "\(text(position["binding"]) ?? "")=\(value)"
            }.joined(separator: " ")
        }
        return keys.filter { !$0.isEmpty }.joined(separator: ", ")
    }

    private static func outcomes(_ outcomes: JSONObject) -> [String] {
        var table: [[String]] = []
        table.append(["confirmed", number(outcomes["confirmed"])])
        table.append(["sent", number(outcomes["sent"]), counts(outcomes["sentBy"])])
        let collapsed = (outcomes["collapsedInto"]?.arrayValue ?? []).map {
            "into \(number($0.objectValue?["sequence"])) \(number($0.objectValue?["holders"]))"
        }
        table.append([
            "collapsed", number(outcomes["collapsed"]), collapsed.joined(separator: ", "),
        ])
        let withheld = (outcomes["withheldFor"]?.arrayValue ?? []).map { reason in
            let reason = reason.objectValue ?? [:]
            let until = text(reason["until"]).map { " until \($0)" } ?? ""
            return "\(text(reason["reason"]) ?? "") \(number(reason["holders"]))\(until)"
        }
        table.append(["withheld", number(outcomes["withheld"]), withheld.joined(separator: ", ")])
        table.append([
            "unreachable", number(outcomes["unreachable"]), counts(outcomes["unreachableFor"]),
        ])
        return ["outcomes"] + TextBlock.columns(table, indent: 2)
    }

    // MARK: Clients

    /// What the gateway says of a client.
    static func client(_ answer: JSONValue) -> String {
        let client = answer.objectValue ?? [:]
        var lines = [
            TextBlock.line(
                "\(text(client["client"]) ?? "")  \(text(client["platform"]) ?? "")  confirmed "
                    + "\(number(client["confirmed"])) of \(number(client["head"]))"
                    + (client["heardOf"] == false ? "  not heard of since the gateway started" : "")
            )
        ]
        var table: [[String]] = []
        for (name, label) in [
            ("widgets", "widget"), ("recommendations", "set"), ("controls", "control"),
        ] {
            for item in client[name]?.arrayValue ?? [] {
                let item = item.objectValue ?? [:]
                table.append([
                    label, text(item["kind"]) ?? "", parameters(item["parameters"]), since(item),
                    outcome(item),
                ])
            }
        }
        lines += TextBlock.columns(table, indent: 2)
        for stream in client["streams"]?.arrayValue ?? [] {
            let stream = stream.objectValue ?? [:]
            lines.append(
                "stream at \(number(stream["watermark"]))"
                    + (stream["lagging"] == true ? ", takes no bytes" : ""))
        }
        for address in client["addresses"]?.arrayValue ?? [] {
            let address = address.objectValue ?? [:]
            var line = [
                text(address["type"]), text(address["pushType"]),
                text(address["token"]) ?? text(address["url"]),
            ].compactMap { $0 }.joined(separator: " ")
            line += "  delivered \(number(address["delivered"]))"
            if let failures = address["failures"]?.integerValue, failures > 0 {
                line += ", \(failures) failures"
            }
            if let at = text(address["retryAt"]) { line += ", again at \(at)" }
            if let why = text(address["unusable"]) { line += ", \(why)" }
            lines.append(TextBlock.line(line))
        }
        return lines.joined(separator: "\n")
    }

    private static func parameters(_ parameters: JSONValue?) -> String {
        (parameters?.objectValue?.members ?? []).map { "\($0.name)=\($0.value.text)" }
            .joined(separator: " ")
    }

    private static func since(_ item: JSONObject) -> String {
        if item["sleeps"] == true { return "sleeps" }
        guard let stale = item["stale"]?.objectValue else { return "fresh" }
        let latest =
            stale["latest"] == stale["sequence"] ? "" : ", latest \(number(stale["latest"]))"
        return "stale since \(text(stale["time"]) ?? "") by \(text(stale["cause"]) ?? "") "
            + number(stale["sequence"]) + latest
    }

    private static func outcome(_ item: JSONObject) -> String {
        [
            text(item["outcome"]), text(item["channel"]), text(item["reason"]),
            item["into"]?.integerValue.map { "into \($0)" },
            text(item["until"]).map { "until \($0)" },
        ].compactMap { $0 }.joined(separator: " ")
    }

    // MARK: Catalogs

    /// What a proposed catalog would change.
    static func difference(_ answer: JSONValue) -> String {
        let answer = answer.objectValue ?? [:]
        var lines = [
            "\(number(answer["changes"])) changes since \(text(answer["since"]) ?? "")"
                + (answer["cut"] == true ? ", as many as are replayed" : "")
        ]
        for name in ["unmatched", "broad", "refused"] {
            let (now, proposed) = (
                number(answer["now"]?.objectValue?[name]),
                number(answer["proposed"]?.objectValue?[name])
            )
            if now != "0" || proposed != "0" { lines.append("\(name) \(now) -> \(proposed)") }
        }
        var table: [[String]] = []
        table.append(["kind", "target", "holders", "changes", "reloads", "pushes", "withheld"])
        for kind in answer["kinds"]?.arrayValue ?? [] {
            let kind = kind.objectValue ?? [:]
            func pair(_ name: String) -> String {
                let (now, proposed) = (
                    kind["now"]?.objectValue?[name], kind["proposed"]?.objectValue?[name]
                )
                return now == proposed ? number(now) : "\(number(now)) -> \(number(proposed))"
            }
            table.append([
                text(kind["kind"]) ?? "", text(kind["target"]) ?? "", pair("holders"),
                pair("changes"), pair("reloads"), pair("pushes"), pair("withheld"),
            ])
        }
        return (lines + TextBlock.columns(table) + warningLines(of: .object(answer))).joined(
            separator: "\n")
    }

    // MARK: -

    private static func text(_ value: JSONValue?) -> String? { value?.stringValue }

    private static func number(_ value: JSONValue?) -> String {
        value?.integerValue.map { String($0) } ?? "-"
    }

    private static func counts(_ value: JSONValue?) -> String {
        (value?.objectValue?.members ?? []).map { "\($0.name) \(number($0.value))" }
            .joined(separator: ", ")
    }
}
