import WidgetModel

/// The figures of a simulated fleet, and the limits that it exceeds.
struct FleetReport {
    private struct Row {
        let part: String
        let name: String
        let value: Double
        let unit: String
    }

    private let settings: FleetSettings
    private let rows: [Row]
    /// A sentence for each limit that is exceeded.
    let exceeded: [String]

    /// Creates the report of a run.
    init(_ run: FleetRun) {
        settings = run.settings
        rows = Self.writing(run) + Self.server(run) + Self.node(run) + Self.loss(run)
        exceeded = Self.exceeded(run)
    }

    private static func writing(_ run: FleetRun) -> [Row] {
        let answers = FleetDistribution(run.writing.answers)
        let delays = FleetDistribution(run.writing.delays)
        return [
            Row(part: "log", name: "batches", value: run.writing.batchRate, unit: "/s"),
            Row(part: "log", name: "records in a batch", value: run.writing.meanBatch, unit: ""),
            Row(part: "log", name: "202, p50", value: answers.percentile(0.5) * 1_000, unit: "ms"),
            Row(part: "log", name: "202, p90", value: answers.percentile(0.9) * 1_000, unit: "ms"),
            Row(part: "log", name: "202, p99", value: answers.percentile(0.99) * 1_000, unit: "ms"),
            Row(part: "log", name: "refused", value: Double(run.writing.refused), unit: "posts"),
            Row(
                part: "log", name: "commit to reader, p50", value: delays.percentile(0.5) * 1_000,
                unit: "ms"),
            Row(
                part: "log", name: "commit to reader, p99", value: delays.percentile(0.99) * 1_000,
                unit: "ms"),
        ]
    }

    private static func server(_ run: FleetRun) -> [Row] {
        let queries = Double(run.writing.queries) / run.writing.seconds
        let registrations = Double(run.writing.registrations) / run.writing.seconds
        let log = registrations * run.constants.registrationWAL
        return [
            Row(part: "server", name: "primary, writing", value: run.primaryCores, unit: "cores"),
            Row(part: "server", name: "in the lock", value: run.lockCores, unit: "cores"),
            Row(part: "server", name: "all readers", value: run.readerCores, unit: "cores"),
            Row(part: "server", name: "queries of readers", value: queries, unit: "/s"),
            Row(
                part: "server", name: "sent to readers", value: run.readerBytes / 1e6, unit: "MB/s"),
            Row(
                part: "server", name: "a standby, without readers", value: run.standbyCores,
                unit: "cores"),
            Row(part: "server", name: "registrations", value: registrations, unit: "/s"),
            Row(
                part: "server", name: "write-ahead log of registrations", value: log / 1e6,
                unit: "MB/s"),
            Row(part: "server", name: "disk", value: run.diskBytes / 1e9, unit: "GB"),
        ]
    }

    private static func node(_ run: FleetRun) -> [Row] {
        [
            Row(part: "node", name: "memory", value: run.nodeBytes / 1e9, unit: "GB"),
            Row(part: "node", name: "CPU without posts", value: run.nodeCores, unit: "cores"),
            Row(part: "node", name: "keys in the window", value: run.keys, unit: ""),
        ]
    }

    private static func loss(_ run: FleetRun) -> [Row] {
        guard let handOver = run.handOver, let reconnect = run.reconnect else { return [] }
        let times = FleetDistribution(handOver.times)
        let lookUps = Double(reconnect.peak) * run.constants.clientLookUp
        return [
            Row(
                part: "loss", name: "partitions moved", value: Double(handOver.partitions), unit: ""
            ),
            Row(
                part: "loss", name: "of them to one node",
                value: Double(handOver.partitionsOfOne), unit: ""),
            Row(part: "loss", name: "pushes again, p50", value: times.percentile(0.5), unit: "s"),
            Row(part: "loss", name: "pushes again, all", value: times.percentile(1), unit: "s"),
            Row(part: "loss", name: "loading, one connection", value: handOver.loading, unit: "s"),
            Row(
                part: "loss", name: "streams lost", value: Double(reconnect.clients), unit: ""),
            Row(part: "loss", name: "stream again, p50", value: reconnect.time(of: 0.5), unit: "s"),
            Row(
                part: "loss", name: "stream again, p99", value: reconnect.time(of: 0.99), unit: "s"),
            Row(part: "loss", name: "stream again, all", value: reconnect.time(of: 1), unit: "s"),
            Row(
                part: "loss", name: "answers with 503", value: Double(reconnect.refused), unit: ""),
            Row(
                part: "loss", name: "most streams opened", value: Double(reconnect.peak), unit: "/s"
            ),
            Row(part: "loss", name: "look-ups for them", value: lookUps, unit: "cores"),
        ]
    }

    private static func exceeded(_ run: FleetRun) -> [String] {
        let constants = run.constants
        var sentences: [String] = []
        if run.readerBytes > constants.readerBytesMax {
            sentences.append(
                "network: readers are sent \(Figure.text(run.readerBytes / 1e6)) MB/s, more than "
                    + "\(Figure.text(constants.readerBytesMax / 1e6)) MB/s: let them read from "
                    + "standbys; two of them send \(Figure.text(run.readerBytes / 2e6)) MB/s each.")
        }
        if run.lockCores > constants.lockCPUMax {
            sentences.append(
                "lock: \(Figure.text(run.lockCores)) cores are used in the lock, more than "
                    + "\(Figure.text(constants.lockCPUMax)): fewer changes, or several logs.")
        }
        if run.writing.refused > 0 {
            sentences.append(
                "lock: \(run.writing.refused) posts were answered 503, because the log did not take "
                    + "as many: fewer changes, or several logs.")
        }
        if run.turn > constants.lockTimeout * constants.turnShareMax {
            sentences.append(
                "lock: a turn of all writers takes \(Figure.text(run.turn * 1_000)) ms, more than "
                    + "a quarter of the lock's timeout: send posts to fewer nodes.")
        }
        if run.nodeBytes > constants.nodeMemory {
            sentences.append(
                "memory: a node needs \(Figure.text(run.nodeBytes / 1e9)) GB, more than "
                    + "\(Figure.text(constants.nodeMemory / 1e9)) GB: more nodes.")
        }
        if run.nodeCores > constants.loops * constants.nodeCPUShareMax {
            sentences.append(
                "node CPU: a node needs \(Figure.text(run.nodeCores)) cores, more than half of "
                    + "\(Figure.text(constants.loops)): more nodes, or fewer changes.")
        }
        return sentences
    }

    /// The report as a table, and the sentences.
    var text: String {
        let lines =
            [["", "figure", "value", "unit"]]
            + rows.map { [$0.part, $0.name, Figure.text($0.value), $0.unit] }
        let end = exceeded.isEmpty ? ["No limit is exceeded."] : exceeded
        return ([Figure.table(lines), ""] + end).joined(separator: "\n")
    }

    /// The report as one document.
    var json: JSONValue {
        [
            "settings": [
                "nodes": .integer(Int64(settings.nodes)),
                "writers": .integer(Int64(settings.writers)),
                "changes": .number(settings.changes),
                "clients": .integer(Int64(settings.clients)),
                "widgetsPerClient": .integer(Int64(settings.widgetsPerClient)),
                "lose": .integer(Int64(settings.lost)),
                "grant": .string(settings.grant.rawValue),
                "seconds": .number(settings.seconds),
                "seed": .string(String(settings.seed)),
            ],
            "rows": .array(
                rows.map {
                    [
                        "part": .string($0.part), "name": .string($0.name),
                        "value": .number($0.value), "unit": .string($0.unit),
                    ]
                }),
            "exceeded": .array(exceeded.map { .string($0) }),
        ]
    }
}
