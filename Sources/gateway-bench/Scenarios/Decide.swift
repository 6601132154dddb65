import Foundation
import WidgetModel

/// `decide`: the core alone, without gateway or network; see ``DecideBenchmark``.
struct Decide {
    private static let kinds = 200
    private static let patienceSeconds = 1_800.0

    let settings: BenchSettings

    /// One repetition: the cost of a change along the curve, up to the widgets asked for.
    func measure(_ tell: (String) -> Void) throws -> [Sample] {
        let sizes = DecideBenchmark.curveWidgets.filter { $0 < settings.widgets }
        return try (sizes + [settings.widgets]).flatMap { try measure($0, tell) }
    }

    /// One size, in a process of its own: what it says of memory is the growth of that process,
    /// which memory left over from other sizes would hide.
    private func measure(_ widgets: Int, _ tell: (String) -> Void) throws -> [Sample] {
        tell("\(widgets) widgets")
        let directory = NSTemporaryDirectory() + "gateway-bench-decide-" + UUID().uuidString
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let (output, errors) = (directory + "/output", directory + "/errors")
        var arguments = ["decide", "--in-process", "--json", "--repetitions", "1"]
        arguments += ["--widgets", "\(widgets)", "--gateway", settings.gateway]
        if settings.isQuick { arguments.append("--quick") }
        let child = try ChildProcess(
            "/proc/self/exe", arguments, cores: settings.serverCores, output: output,
            errors: errors)
        defer { child.stop(seconds: 1) }
        guard try child.wait(seconds: Self.patienceSeconds) == 0,
            let data = FileManager.default.contents(atPath: output),
            let rows = try JSONValue(parsing: Array(data)).objectValue?["rows"]?.arrayValue
        else {
            let said = try? String(contentsOfFile: errors, encoding: .utf8)
            throw BenchFailure("the core was not measured: \(said?.suffix(1_000) ?? "")")
        }
        return rows.compactMap { row in
            guard let row = row.objectValue, let name = row["name"]?.stringValue,
                let unit = row["unit"]?.stringValue, let value = row["value"]
            else { return nil }
            return Double(value.text).map { Sample(.decide, name, $0, unit) }
        }
    }

    /// One repetition, here.
    func measureInProcess(_ tell: (String) -> Void) -> [Sample] {
        let figures = DecideBenchmark.run(
            widgets: settings.widgets, kinds: Self.kinds,
            changes: settings.countedChanges ?? (settings.isQuick ? 100_000 : 1_000_000),
            isCountOnly: settings.countedChanges != nil, progress: tell)
        let size = ", \(settings.widgets) widgets"
        return [
            Sample(.decide, "decisions" + size, figures.decisionsPerSecond, "1/s"),
            Sample(.decide, "time per decision" + size, figures.decisionNanoseconds, "ns"),
            Sample(.decide, "deliveries per decision" + size, figures.deliveriesPerDecision, ""),
            Sample(.decide, "core memory per client" + size, figures.coreBytesPerClient, "B"),
            Sample(.decide, "record per client" + size, figures.recordBytesPerClient, "B"),
            Sample(.decide, "reconnect" + size, figures.reopenNanoseconds / 1e3, "us"),
        ]
            + (figures.indexBytesPerWidget.map {
                [Sample(.decide, "index per widget" + size, $0, "B")]
            } ?? [])
    }
}
