import GatewayDocuments
import WidgetModel

enum ExplanationText {
    // MARK: Changes

    /// Returns the explanation of changes that are not posted.
    static func events(_ document: ExplainedEvents) -> String {
        document.events.map(change).joined(separator: "\n\n")
    }

    static func change(_ change: ExplainedChange) -> String {
        var head = change.sequence.map { "change \($0)  " } ?? "not posted  "
        head += change.time.map { "\($0)  " } ?? ""
        head += [change.entity, change.entityID, change.operation].compactMap { $0 }
            .joined(separator: " ")
        if change.broad { head += "  broad" }
        if change.unmatched { head += "  matches no rule" }
        if change.catalogOfThen == false { head += "  by the current catalog" }
        var lines = [TextBlock.line(head)]
        if let hint = change.hint { lines.append("  " + TextBlock.line(hint)) }
        let rules: [[String]] = change.rules.map { rule in
            [
                [rule.verdict, rule.attribute].compactMap { $0 }.joined(separator: " "),
                rule.target, rule.kind, rule.place, keys(rule) + wanted(rule),
            ]
        }
        lines += TextBlock.columns(rules, indent: 2)
        let holders = change.holders
        lines.append(
            "holders \(holders.count): widgets \(holders.widgets), clients \(holders.clients)")
        let who: [[String]] = [
            ("kinds", holders.kinds), ("platforms", holders.platforms),
            ("channels", holders.channels),
        ].filter { !$0.1.members.isEmpty }.map { [$0.0, counts($0.1)] }
        lines += TextBlock.columns(who, indent: 2)
        return (lines + outcomes(change.outcomes)).joined(separator: "\n")
    }

    private static func keys(_ rule: ConsideredRule) -> String {
        let keys = (rule.keys ?? []).map { key in
            key.map {
                "\($0.binding)=\($0.value ?? ($0.unset == true ? "(unset)" : "(missing)"))"
            }.joined(separator: " ")
        }
        return keys.filter { !$0.isEmpty }.joined(separator: ", ")
    }

    /// The properties or operations that a rule lists, if that is why it does not match.
    private static func wanted(_ rule: ConsideredRule) -> String {
        switch rule.verdict {
        case "properties-not-listed": "wants " + (rule.properties ?? []).joined(separator: ", ")
        case "operation-not-listed": "wants " + (rule.operations ?? []).joined(separator: ", ")
        default: ""
        }
    }

    private static func outcomes(_ outcomes: OutcomeSummary) -> [String] {
        let collapsed = outcomes.collapsedInto.map { "into \($0.sequence) \($0.holders)" }
        let withheld = outcomes.withheldFor.map {
            "\($0.reason) \($0.holders)" + ($0.until.map { " until \($0)" } ?? "")
        }
        let table = [
            ["confirmed", "\(outcomes.confirmed)"],
            ["sent", "\(outcomes.sent)", counts(outcomes.sentBy)],
            ["collapsed", "\(outcomes.collapsed)", collapsed.joined(separator: ", ")],
            ["withheld", "\(outcomes.withheld)", withheld.joined(separator: ", ")],
            ["unreachable", "\(outcomes.unreachable)", counts(outcomes.unreachableFor)],
        ]
        return ["outcomes"] + TextBlock.columns(table, indent: 2)
    }

    // MARK: Clients

    static func client(_ client: ExplainedClient) -> String {
        var lines = [
            TextBlock.line(
                "\(client.client)  \(client.platform)  confirmed \(client.confirmed) of "
                    + "\(client.head)  " + seen(client))
        ]
        let items = [
            ("widget", client.widgets), ("set", client.recommendations),
            ("control", client.controls), ("activity", client.activities ?? []),
        ]
        let table: [[String]] = items.flatMap { label, items in
            items.map {
                [label, $0.kind ?? $0.type ?? "", parameters($0), since($0), outcome($0)]
            }
        }
        lines += TextBlock.columns(table, indent: 2)
        lines += client.streams.map {
            "stream at \($0.watermark)" + ($0.lagging ? ", not reading" : "")
        }
        lines += client.addresses.map { address in
            let named = [
                address.type, address.pushType, address.activity,
                address.token ?? address.channel ?? address.url ?? address.endpoint,
            ]
            var line = named.compactMap { $0 }.joined(separator: " ")
            line += "  delivered \(address.delivered.map { "\($0)" } ?? "-")"
            if let cause = address.cause { line += ", last push: \(cause)" }
            if let failures = address.failures, failures > 0 { line += ", \(failures) failures" }
            if let at = address.retryAt { line += ", retry at \(at)" }
            if let why = address.unusable { line += ", \(why)" }
            if let problem = address.problem { line += ": \(problem)" }
            if let budget = address.budget { line += ", " + text(budget) }
            return TextBlock.line(line)
        }
        lines += (client.removedAddresses ?? []).map { removed in
            TextBlock.line(
                "\(removed.channel) address removed at \(removed.time): "
                    + (removed.reason ?? "rejected permanently")
                    + "; it is told nothing there until it registers a new one")
        }
        lines += (client.warnings ?? []).map { TextBlock.line("warning: \($0)") }
        return lines.joined(separator: "\n")
    }

    private static func seen(_ client: ExplainedClient) -> String {
        if !client.streams.isEmpty { return "stream open" }
        let last = client.lastSeen.map { "last seen \($0)" }
        return [last, client.heardOf ? nil : "not seen since the gateway started"]
            .compactMap { $0 }.joined(separator: ", ")
    }

    private static func text(_ budget: ExplainedAddress.Budget) -> String {
        "budget: \(budget.left) of \(budget.burst) pushes left"
            + (budget.reserved > 0 ? " (\(budget.reserved) for urgent changes only)" : "")
            + (budget.refillsAt.map { ", next at \($0)" } ?? "") + ", \(budget.perDay) a day"
    }

    private static func parameters(_ item: ExplainedItem) -> String {
        ((item.parameters ?? item.attributes)?.members ?? []).map { "\($0.name)=\($0.value.text)" }
            .joined(separator: " ")
    }

    private static func since(_ item: ExplainedItem) -> String {
        if item.sleeps == true { return "inactive" }
        let lacks = item.lacks.map { "no client attribute " + $0.joined(separator: ", ") }
        guard let stale = item.stale else {
            if item.dependsOnNothing == true {
                return ["depends on nothing", lacks].compactMap { $0 }.joined(separator: ": ")
            }
            return ["fresh", lacks.map { "by rules that apply; \($0)" }].compactMap { $0 }
                .joined(separator: " ")
        }
        let latest = stale.latest == stale.sequence ? "" : ", latest \(stale.latest)"
        let time = (stale.time ?? "an unknown time") + (stale.isEarliest ? "" : " or earlier")
        return ["stale since \(time) by \(stale.cause) \(stale.sequence)" + latest, lacks]
            .compactMap { $0 }.joined(separator: "; ")
    }

    private static func outcome(_ item: ExplainedItem) -> String {
        [
            item.outcome, item.channel, item.reason, item.into.map { "into \($0)" },
            item.until.map { "until \($0)" },
        ].compactMap { $0 }.joined(separator: " ")
    }

    // MARK: Catalogs

    /// Returns what a proposed catalog would change.
    static func difference(_ document: CatalogDifference) -> String {
        var lines = [
            "\(document.changes) changes since \(document.since)"
                + (document.cut ? " (replay limit reached)" : "")
        ]
        let (now, proposed) = (document.now, document.proposed)
        for (name, now, proposed) in [
            ("unmatched", now.unmatched, proposed.unmatched), ("broad", now.broad, proposed.broad),
            ("refused", now.refused, proposed.refused),
        ] where now != 0 || proposed != 0 {
            lines.append("\(name) \(now) -> \(proposed)")
        }
        let figures: [KeyPath<CatalogDifference.Figures, Int>] = [
            \.holders, \.changes, \.reloads, \.pushes, \.withheld,
        ]
        let table: [[String]] = document.kinds.map { kind in
            var row = [kind.kind, kind.target]
            for path in figures {
                let now = kind.now.map { String($0[keyPath: path]) } ?? "-"
                let proposed = kind.proposed.map { String($0[keyPath: path]) } ?? "-"
                row.append(now == proposed ? now : "\(now) -> \(proposed)")
            }
            return row
        }
        let headings = ["kind", "target", "holders", "changes", "reloads", "pushes", "withheld"]
        lines += TextBlock.columns([headings] + table)
        lines += document.warnings.map { "  warning: \($0)" }
        return lines.joined(separator: "\n")
    }

    private static func counts(_ counts: JSONMap<Int>) -> String {
        counts.members.map { "\($0.name) \($0.value)" }.joined(separator: ", ")
    }
}
