import CatalogModel
import Foundation
import GatewayTelemetry
import Synchronization
import WidgetModel

/// The metrics of a fleet: on a terminal a table that is updated in place, elsewhere lines.
final class FleetTable: Sendable {
    /// The content of the final report.
    struct Summary: Sendable {
        let devices: Int
        let ramp: Duration
        let snapshot: FleetRecord.Snapshot
        /// The gateway's own measurements over the same time; `nil` if they were not requested.
        let gateway: HistogramCounts?
        /// Whether the reloads due are known.
        let postsOwn: Bool
    }

    private let kinds: [String]
    private let form: OutputForm
    private let isTerminal: Bool
    private let isFirst = Atomic(true)

    init(_ plan: FleetPlan, form: OutputForm) {
        kinds = plan.kinds.map(\.kind)
        self.form = form
        isTerminal = form == .text && isatty(STDOUT_FILENO) == 1
    }

    /// Shows the metrics of a window.
    func show(_ snapshot: FleetRecord.Snapshot, after time: Duration) {
        guard isTerminal else {
            Terminal.print(Self.json(snapshot, after: time, kinds: kinds), as: form) {
                Self.line(snapshot, after: time)
            }
            return
        }
        let rows = rows(snapshot, after: time)
        let back = isFirst.exchange(false, ordering: .relaxed) ? "" : "\u{1B}[\(rows.count)A"
        Terminal.print(back + rows.map { $0 + "\u{1B}[K" }.joined(separator: "\n"))
    }

    /// Shows the final report.
    func show(_ summary: Summary) {
        Terminal.print(Self.json(summary), as: form) { Self.text(summary) }
    }

    // MARK: For people

    /// One line for each kind, and one for all.
    func rows(_ snapshot: FleetRecord.Snapshot, after time: Duration) -> [String] {
        let width = max(12, kinds.map(\.count).max() ?? 0)
        func row(_ name: String, _ fields: [String]) -> String {
            name.padding(toLength: width, withPad: " ", startingAt: 0)
                + fields.map { String(repeating: " ", count: max(1, 11 - $0.count)) + $0 }.joined()
        }
        func row(_ name: String, _ figures: FleetRecord.Stats) -> String {
            row(
                name,
                [
                    String(figures.timelines), String(figures.told), String(figures.rebuilt),
                    Self.text(figures.window.seconds(0.5)),
                    Self.text(figures.window.seconds(0.99)),
                    Self.text(figures.total.seconds(0.99)),
                ])
        }
        return [
            "\(Self.text(time))  \(snapshot.connected) connected  \(snapshot.posted) posted  "
                + "\(snapshot.due) due  \(snapshot.lost) lost  \(snapshot.strays) stray",
            row(
                "kind",
                ["timelines", "notified", "rebuilt", "p50", "p99", "total p99"]),
        ] + zip(kinds, snapshot.kinds).map { row($0, $1) } + [row("all", snapshot.all)]
    }

    static func line(_ snapshot: FleetRecord.Snapshot, after time: Duration) -> String {
        "\(text(time))  connected \(snapshot.connected)  posted \(snapshot.posted)  "
            + "notified \(snapshot.all.told)  rebuilt \(snapshot.all.rebuilt)  due \(snapshot.due)  "
            + "p50 \(text(snapshot.all.window.seconds(0.5)))  "
            + "p99 \(text(snapshot.all.window.seconds(0.99)))"
    }

    static func text(_ summary: Summary) -> String {
        let snapshot = summary.snapshot
        var lines = [
            "devices    \(summary.devices), ready after \(text(summary.ramp))",
            "connected  \(snapshot.connected)",
            "notified   \(snapshot.all.told)",
            "rebuilt    \(snapshot.all.rebuilt), including \(snapshot.all.timelines) first builds"
                + (summary.postsOwn ? " and \(snapshot.all.total.count) for changes" : ""),
            "failures   \(snapshot.failures)"
                + (snapshot.failure.map { ", the last: \($0)" } ?? ""),
            "unverified \(snapshot.unverified)",
        ]
        if summary.postsOwn {
            lines += [
                "posted     \(snapshot.posted)",
                "lost       \(snapshot.lost)",
                "stray      \(snapshot.strays)",
                "p50        \(text(snapshot.all.total.seconds(0.5)))",
                "p99        \(text(snapshot.all.total.seconds(0.99)))",
            ]
        } else {
            lines.append("lost       unknown: no changes posted")
        }
        if let gateway = summary.gateway {
            lines.append("gateway    \(gateway.total) rebuilds")
            for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
                guard let bucket = gateway.bucket(ofQuantile: share) else { continue }
                var line = "           \(name) \(text(bucket.above)) to \(text(bucket.upTo))"
                if let own = snapshot.all.total.seconds(share) {
                    line +=
                        gateway.agrees(own, onQuantile: share)
                        ? ", which agrees" : ", WHICH DOES NOT AGREE"
                }
                lines.append(line)
            }
        }
        return lines.joined(separator: "\n")
    }

    /// Seconds in three digits; a dash for `nil`.
    static func text(_ seconds: Double?) -> String {
        guard let seconds else { return "-" }
        if seconds == .infinity { return "more" }
        if seconds < 1 { return String(format: "%.3g ms", seconds * 1000) }
        return String(format: "%.3g s", seconds)
    }

    static func text(_ duration: Duration) -> String {
        String(format: "%.1f s", duration / .seconds(1))
    }

    // MARK: For programs

    static func json(
        _ snapshot: FleetRecord.Snapshot, after time: Duration, kinds: [String]
    ) -> JSONValue {
        var byKind = JSONObject()
        for (kind, figures) in zip(kinds, snapshot.kinds) {
            byKind[kind] = .object(json(figures, \.window))
        }
        var object = json(snapshot.all, \.window)
        object["seconds"] = .number(time / .seconds(1))
        object["connected"] = .integer(Int64(snapshot.connected))
        object["posted"] = .integer(Int64(snapshot.posted))
        object["due"] = .integer(Int64(snapshot.due))
        object["kinds"] = .object(byKind)
        return .object(object)
    }

    static func json(_ summary: Summary) -> JSONValue {
        let snapshot = summary.snapshot
        var object = json(snapshot.all, \.total)
        object["devices"] = .integer(Int64(summary.devices))
        object["rampSeconds"] = .number(summary.ramp / .seconds(1))
        object["connected"] = .integer(Int64(snapshot.connected))
        object["failures"] = .integer(Int64(snapshot.failures))
        object["unverified"] = .integer(Int64(snapshot.unverified))
        if summary.postsOwn {
            object["posted"] = .integer(Int64(snapshot.posted))
            object["rebuiltForChanges"] = .integer(Int64(snapshot.all.total.count))
            object["lost"] = .integer(Int64(snapshot.lost))
            object["stray"] = .integer(Int64(snapshot.strays))
        }
        if let gateway = summary.gateway {
            var measured: JSONObject = ["rebuilds": .integer(Int64(gateway.total))]
            for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
                guard let bucket = gateway.bucket(ofQuantile: share) else { continue }
                measured[name] = [
                    "above": .number(bucket.above),
                    "upTo": bucket.upTo == .infinity ? .null : .number(bucket.upTo),
                ]
                if let own = snapshot.all.total.seconds(share) {
                    measured["\(name)Agrees"] = .bool(gateway.agrees(own, onQuantile: share))
                }
            }
            object["gateway"] = .object(measured)
        }
        return ["summary": .object(object)]
    }

    private static func json(
        _ figures: FleetRecord.Stats, _ times: KeyPath<FleetRecord.Stats, LatencyHistogram>
    ) -> JSONObject {
        var object: JSONObject = [
            "timelines": .integer(Int64(figures.timelines)), "told": .integer(Int64(figures.told)),
            "rebuilt": .integer(Int64(figures.rebuilt)),
        ]
        for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
            object[name] = figures[keyPath: times].seconds(share).map { .number($0) } ?? .null
        }
        return object
    }
}
