import Foundation

/// Metrics of one app for node_exporter's textfile collector, in Prometheus's text format 0.0.4.
struct TextfilePage {
    private let app: String
    private var lines: [String] = []

    init(app: String) {
        self.app = app
    }

    /// Adds a metric, unless it has no samples. A sample's labels follow `app`, each after a comma.
    mutating func add(
        _ name: String, type: String, help: String, samples: [(labels: String, value: String)]
    ) {
        guard !samples.isEmpty else { return }
        lines += ["# HELP \(name) \(help)", "# TYPE \(name) \(type)"]
        lines += samples.map { "\(name){app=\"\(app)\"\($0.labels)} \($0.value)" }
    }

    var text: String { lines.joined(separator: "\n") + "\n" }

    /// Returns text as it stands between the quotes of a label.
    static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
            .replacing("\n", with: "\\n")
    }

    /// Replaces a file with the page of metrics. Throws `ExitCode` if it cannot be written.
    static func write(_ text: String, to path: String) throws {
        do {
            // The collector reads files with this suffix; the atomic write never shows it half a
            // file.
            try Data(text.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
        } catch {
            Terminal.complain("timelinectl: \(path) cannot be written: \(error)")
            throw ExitStatus.usage
        }
    }
}
