import WidgetModel

/// The deliveries within a limit, of those decided.
struct AuditShare: Sendable, Equatable {
    /// The number of deliveries within the limit.
    var inTime = 0
    /// The number of deliveries within the limit or too late for it.
    var total = 0

    /// The share between 0 and 1; `nil` when no delivery is decided.
    var value: Double? { total == 0 ? nil : Double(inTime) / Double(total) }

    /// The share in percent, rounded down so that only a share without a miss is 100 %.
    var text: String {
        guard total > 0 else { return "unknown" }
        let parts = inTime * 10_000 / total
        let rest = parts % 100
        return rest == 0 ? "\(parts / 100) %" : "\(parts / 100).\(rest < 10 ? "0" : "")\(rest) %"
    }

    var json: JSONValue { value.map { .number($0) } ?? .null }

    static func + (one: AuditShare, other: AuditShare) -> AuditShare {
        AuditShare(inTime: one.inTime + other.inTime, total: one.total + other.total)
    }
}

/// The figures of an auditor over five minutes.
struct AuditReport: Sendable, Equatable {
    struct Node: Sendable, Equatable {
        /// Its URL.
        let name: String
        /// Whether its stream is open.
        let isConnected: Bool
        /// The shares delivered within ``AuditWindow/limits``.
        let shares: [AuditShare]
        /// The last failure at the node; `nil` if it is connected and missed nothing.
        let reason: String?

        /// The number of changes that were not delivered within a minute.
        var missing: Int { shares.last.map { $0.total - $0.inTime } ?? 0 }
    }

    let changes: Int
    let nodes: [Node]

    /// The shares of all nodes together, delivered within ``AuditWindow/limits``.
    var shares: [AuditShare] {
        AuditWindow.limits.indices.map { limit in
            nodes.reduce(AuditShare()) { $0 + $1.shares[limit] }
        }
    }

    /// The share delivered within 10 s.
    var reliability: AuditShare { shares[AuditWindow.reliabilityLimit] }

    /// Whether the reliability figure is known and at least `objective`.
    func isMet(_ objective: Double) -> Bool { reliability.value.map { $0 >= objective } ?? false }

    /// The figures on one line.
    var text: String {
        let all = shares
        var parts = [
            "reliability \(reliability.text) (\(reliability.inTime) of \(reliability.total) within "
                + "10 s, over 5 min)",
            "1 s \(all[0].text)", "1 min \(all[2].text)",
        ]
        for node in nodes where !node.isConnected || node.reason != nil || node.missing > 0 {
            var faults = node.isConnected ? [] : ["not connected"]
            if node.missing > 0 { faults.append("\(node.missing) missing") }
            if let reason = node.reason { faults.append(TextBlock.line(reason)) }
            parts.append("\(node.name): \(faults.joined(separator: ", "))")
        }
        return parts.joined(separator: "; ")
    }

    /// The figures for programs.
    func json(objective: Double) -> JSONValue {
        var object = Self.members(of: shares)
        object["reliability"] = reliability.json
        object["objective"] = .number(objective)
        object["changes"] = .integer(Int64(changes))
        object["nodes"] = .array(
            nodes.map { node in
                var object = Self.members(of: node.shares)
                object["node"] = .string(node.name)
                object["connected"] = .bool(node.isConnected)
                object["missing"] = .integer(Int64(node.missing))
                if let reason = node.reason { object["reason"] = .string(reason) }
                return .object(object)
            })
        return .object(object)
    }

    private static func members(of shares: [AuditShare]) -> JSONObject {
        var object = JSONObject()
        for (limit, share) in zip(AuditWindow.limits, shares) {
            object["within\(limit.components.seconds)s"] = share.json
        }
        return object
    }

    /// The metrics of an auditor that ran last at `second`, in seconds since 1970.
    func metrics(app: String, objective: Double, second: Int64) -> String {
        var page = TextfilePage(app: app)
        func label(_ node: Node) -> String { ",node=\"\(TextfilePage.escaped(node.name))\"" }
        page.add(
            "timeline_audit_reliability_ratio", type: "gauge",
            help: "Share of changes delivered within 10 s, over 5 minutes and all nodes.",
            samples: reliability.value.map { [("", "\($0)")] } ?? [])
        page.add(
            "timeline_audit_objective_ratio", type: "gauge",
            help: "The objective of the reliability, from --objective.",
            samples: [("", "\(objective)")])
        page.add(
            "timeline_audit_delivered_ratio", type: "gauge",
            help: "Share of changes delivered within these seconds, over 5 minutes, by node.",
            samples: nodes.flatMap { node in
                zip(AuditWindow.limits, node.shares).compactMap { limit, share in
                    share.value.map {
                        (label(node) + ",within=\"\(limit.components.seconds)\"", "\($0)")
                    }
                }
            })
        page.add(
            "timeline_audit_missing", type: "gauge",
            help: "Changes not delivered within a minute, of the last 5 minutes, by node.",
            samples: nodes.map { (label($0), "\($0.missing)") })
        page.add(
            "timeline_audit_connected", type: "gauge",
            help: "Whether the auditor's stream at the node is open.",
            samples: nodes.map { (label($0), $0.isConnected ? "1" : "0") })
        page.add(
            "timeline_audit_last_run_timestamp_seconds", type: "gauge",
            help: "When the auditor wrote these metrics.", samples: [("", "\(second)")])
        return page.text
    }
}
