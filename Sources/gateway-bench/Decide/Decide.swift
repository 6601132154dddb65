import Glibc
import WidgetModel

extension Repetition {
    private static let kinds = 200
    private static let timeoutSeconds = 1_800.0
    /// The sizes of the curve: the cost of a change must not grow along it.
    private static let curveWidgets = [10_000, 100_000, 1_000_000, 10_000_000]

    /// Measures `decide`: the core alone, without gateway or network, along the curve up to the widgets
    /// asked for.
    func decide() throws -> [Sample] {
        let sizes = Self.curveWidgets.filter { $0 < settings.widgets }
        return try (sizes + [settings.widgets]).flatMap(decide(widgets:))
    }

    /// Measures one size, in a process of its own: the figures of memory are the growth of that
    /// process, which memory left over from other sizes would hide.
    private func decide(widgets: Int) throws -> [Sample] {
        tell("\(widgets) widgets")
        let output = try Machine.run(
            [
                Machine.ownProgram, "decide", "--in-process", "--json", "--repetitions", "1",
                "--widgets", "\(widgets)", "--gateway", settings.gateway,
            ] + (settings.isQuick ? ["--quick"] : []),
            on: settings.serverCores, seconds: Self.timeoutSeconds)
        guard
            let rows = try JSONValue(parsing: Array(output.utf8)).objectValue?["rows"]?.arrayValue
        else { throw BenchFailure("the core was not measured") }
        return rows.compactMap { row in
            guard let row = row.objectValue, let name = row["name"]?.stringValue,
                let unit = row["unit"]?.stringValue, let value = row["value"]
            else { return nil }
            return Double(value.text).map { Sample(.decide, name, $0, unit: unit) }
        }
    }

    /// Measures one size in this process: how fast one core decides changes, and the memory of the
    /// live index, through the core's own interface, without network, disk or signing.
    ///
    /// When instructions are counted, the same thousand prepared changes repeat: a counter that
    /// sees the whole process then sees one decision more for each change more.
    ///
    /// Ten million widgets take 6 GiB of memory and about a minute.
    func decideInProcess() -> [Sample] {
        var workload = DecideWorkload(widgets: settings.widgets, kinds: Self.kinds)
        tell("registering \(workload.clients) clients with \(workload.widgets) widgets")
        let empty = residentBytes
        let clients = (0..<workload.clients).map(workload.client)
        let registered = residentBytes
        let count = Double(max(1, clients.count))

        tell("opening \(clients.count) streams")
        // The same streams without a key, held meanwhile, show what the keys alone cost.
        var keyless = DecideGateway(workload.catalog())
        for client in clients { keyless.open(client, kinds: []) }
        let opening = residentBytes
        var gateway = DecideGateway(workload.catalog())
        for client in clients { gateway.open(client, kinds: nil) }
        let withKeys = residentBytes - opening
        let withoutKeys = opening - registered
        keyless = DecideGateway(workload.catalog())

        let reopened = min(clients.count, 10_000)
        let reopening = processorNanoseconds {
            for index in 0..<reopened { gateway.reopen(index, clients[index]) }
        }

        let decisions = decide(&workload, by: &gateway)
        let size = ", \(settings.widgets) widgets"
        var samples = [
            Sample(
                .decide, "decisions" + size, 1e9 / max(1e-9, decisions.nanoseconds), unit: "1/s"),
            Sample(.decide, "time per decision" + size, decisions.nanoseconds, unit: "ns"),
            Sample(.decide, "deliveries per decision" + size, decisions.deliveries),
            Sample(.decide, "core memory per client" + size, Double(withKeys) / count, unit: "B"),
            Sample(
                .decide, "record per client" + size, Double(registered - empty) / count, unit: "B"),
            Sample(
                .decide, "reconnect" + size, reopening / Double(max(1, reopened)) / 1e3, unit: "us"),
        ]
        // Below, pages are too coarse a measure.
        if workload.widgets >= 100_000 {
            let bytes = Double(withKeys - withoutKeys) / Double(workload.widgets)
            samples.append(Sample(.decide, "index per widget" + size, bytes, unit: "B"))
        }
        return samples
    }

    /// Decides changes, and returns the time and the deliveries of one, with those that ends of windows
    /// sent.
    private func decide(
        _ workload: inout DecideWorkload, by gateway: inout DecideGateway
    ) -> (nanoseconds: Double, deliveries: Double) {
        let changes = settings.countedChanges ?? (settings.isQuick ? 100_000 : 1_000_000)
        let isCountOnly = settings.countedChanges != nil
        tell("deciding \(changes) changes")
        let block = 1_000
        var elapsed = 0.0
        var decided = 0
        // The first of them warm caches and fill the version window.
        let warming = (0..<(isCountOnly ? block : max(block, changes / 10)))
            .map { _ in workload.nextChange() }
        gateway.decideAll(warming)
        gateway.deliveries = 0
        while decided < changes {
            let count = min(block, changes - decided)
            let next =
                isCountOnly
                ? Array(warming.prefix(count)) : (0..<count).map { _ in workload.nextChange() }
            elapsed += processorNanoseconds { gateway.decideAll(next) }
            decided += count
        }
        let count = Double(max(1, decided))
        return (elapsed / count, Double(gateway.deliveries) / count)
    }

    private var residentBytes: Int64 { ProcessStats.residentBytes(getpid()) }

    /// Returns the processor time of `body` on this thread: on a machine that others use as well the
    /// wall clock would say less.
    private func processorNanoseconds(_ body: () -> Void) -> Double {
        func now() -> Double {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return Double(time.tv_sec) * 1e9 + Double(time.tv_nsec)
        }
        let start = now()
        body()
        return now() - start
    }
}
