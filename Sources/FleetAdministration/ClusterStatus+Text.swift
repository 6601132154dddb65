import GatewayFleet
import WidgetModel

extension ClusterStatus {
    /// The status as one JSON object.
    package var json: JSONValue {
        [
            "schema": .integer(version), "log": .string(log), "closed": .bool(isClosed),
            "head": .integer(head), "chain": .string(chain), "slicesAhead": .integer(slicesAhead),
            "floor": .integer(floor),
            "snapshot": snapshot.map {
                [
                    "position": .integer($0.position), "node": .integer($0.node),
                    "ageSeconds": .number($0.age),
                ]
            } ?? .null,
            "unownedPartitions": .integer(unowned),
            "synchronousStandbyNames": .string(standbyNames), "safe": .bool(isSafe),
            "nodes": .array(nodes.map(\.json)),
            "standbys": .array(
                standbys.map {
                    [
                        "name": $0.name.map { .string($0) } ?? .null,
                        "mode": $0.mode.map { .string($0) } ?? .null,
                    ]
                }),
            "lockHolders": .array(
                lockHolders.map {
                    [
                        "process": .integer($0.process), "login": .string($0.login),
                        "seconds": $0.seconds.map { .number($0) } ?? .null,
                        "waitsForStandby": .bool($0.waitsForStandby),
                    ]
                }),
            "advice": .array(advice.map { .string($0) }),
        ]
    }

    /// The status as lines for a terminal.
    package var lines: [String] {
        var lines = [
            "log        \(log)\(isClosed ? ", closed" : "")",
            "schema     \(version)",
            "head       \(head), chain \(chain)",
            "floor      \(floor)",
            "slices     \(slicesAhead) of 2 ahead",
            "snapshot   "
                + (snapshot.map {
                    "\($0.position), of node \($0.node), \(Int($0.age)) s ago"
                } ?? "none"),
            "quorum     \(standbyNames.isEmpty ? "none: commits wait for the primary only" : standbyNames)",
            "standbys   "
                + (standbys.isEmpty
                    ? "none"
                    : standbys.map { "\($0.name ?? "?") (\($0.mode ?? "not shown"))" }
                        .joined(separator: ", ")),
            "partitions \(4096 - unowned) owned, \(unowned) not",
        ]
        lines += nodes.map(\.line)
        lines += lockHolders.map {
            "lock       process \($0.process) of \($0.login)"
                + ($0.seconds.map { seconds in ", \(Int(seconds)) s" } ?? "")
                + ($0.waitsForStandby ? ", waits for a standby" : "")
        }
        return lines + advice.map { "! \($0)" }
    }
}

extension ClusterStatus.Node {
    fileprivate var json: JSONValue {
        [
            "number": .integer(number), "login": .string(login),
            "url": url.map { .string($0) } ?? .null, "generation": .integer(generation),
            "leaseSeconds": leaseSeconds.map { .number($0) } ?? .null, "serves": .bool(serves),
            "partitions": .integer(partitions), "leases": .array(leases.map { .string($0) }),
            "reservation": reservation.map { .integer($0) } ?? .null,
            "window": window.map {
                [
                    "position": .integer(Int64(clamping: $0.position)),
                    "floor": .integer(Int64(clamping: $0.floor)),
                    "hash": .string(String($0.hash, radix: 16)),
                ]
            } ?? .null,
        ]
    }

    fileprivate var line: String {
        let lease =
            switch leaseSeconds {
            case nil: "never seen"
            case let seconds? where seconds > 0: "lease \(Int(seconds)) s"
            case let seconds?: "lease ran out \(Int(-seconds)) s ago"
            }
        let parts =
            ["node \(number)     \(login)", url, lease, "generation \(generation)"]
            + [partitions > 0 ? "\(partitions) partitions" : nil] + leases
            + [reservation.map { "keeps the log from \($0)" }]
            + [window.map { "versions \(String($0.hash, radix: 16)) at \($0.position)" }]
        return parts.compactMap { $0 }.joined(separator: ", ")
    }
}
