import ArgumentParser
import Foundation
import TimelineClient
import WidgetModel

/// Shows a client's widgets the way its device does.
struct ShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show a client's widgets from its archive.",
        discussion: """
            Reads the directory in which a client of this SDK stores its timelines, and draws each \
            placed widget in one of its contexts, by default the first. It runs no code of the app \
            and contacts no gateway: the output is what a screen would show.

            A widget is fresh, stale (the archive says that it must be rebuilt) or a placeholder \
            (no built content can be shown here). ☑ and ☐, or ━● and ●━, are toggles, ( ) buttons, \
            < > links, [ ] images, ▓ colours, ░ backgrounds, and ▒ is hidden content. A toggle \
            with its own style is shown as the app draws it. A widget that is only in the Smart \
            Stack is drawn once for each time the Smart Stack shows it.

            Examples:
              timelinectl show state/device-1
              timelinectl show state/device-1 --location lockScreen --locked
              timelinectl show state/device-1 --mode accented --dark
              timelinectl show state/device-1 --kind com.mygame.quests --json
            """)

    @Argument(help: "The client's archive.")
    var directory: String

    @Option(help: "Location, such as homeScreen, lockScreen or smartStack.")
    var location: String?

    @Option(help: "Rendering mode: fullColor, accented or vibrant.")
    var mode: WidgetRenderingMode?

    @Flag(help: "Locked device: sensitive content is hidden.")
    var locked = false

    @Flag(help: "Dark appearance.")
    var dark = false

    @Flag(name: .customLong("always-on"), help: "Always On display, with reduced luminance.")
    var isAlwaysOn = false

    @Option(help: "Only widgets of this kind.")
    var kind: String?

    @Option(
        help: ArgumentHelp(
            "The time, such as 2026-01-31T12:00:00Z. Default: now.", valueName: "date"))
    var at: String?

    @Flag(help: "Print JSON, one line per widget.")
    var json = false

    func validate() throws { _ = try moment() }

    func run() throws {
        for report in try reports() {
            Terminal.print(report.json, as: json ? .json : .text) { report.text + "\n" }
        }
    }

    /// The reports of the selected widgets.
    ///
    /// - Throws: `ValidationError` if there is no readable client archive.
    func reports() throws -> [WidgetReport] {
        let archive = ClientArchive(directory: directory)
        guard let client = archive.client() else {
            throw ValidationError("\(directory) is not a client archive")
        }
        guard let device = client.device else {
            throw ValidationError(
                "\(directory) belongs to a client that has not registered a device yet")
        }
        let context = WidgetReport.Context(
            location: location.map(WidgetLocation.init(rawValue:)), mode: mode, isLocked: locked,
            isDark: dark, isAlwaysOn: isAlwaysOn)
        if let location, WidgetLocation.known[location] == nil {
            let known = WidgetLocation.known.keys.sorted()
            throw ValidationError(
                "--location: `\(location)` is none of \(known.joined(separator: ", "))")
        }
        let kinds = Set(client.widgets.map(\.widget.kind)).sorted()
        if let kind, !kinds.contains(kind) {
            let hint = kind.nearest(of: kinds).map { "; did you mean `\($0)`?" } ?? ""
            throw ValidationError("no widget of the kind `\(kind)` is placed\(hint)")
        }
        let date = try moment()
        return client.widgets.filter { kind == nil || $0.widget.kind == kind }.flatMap {
            WidgetReport.all(of: $0, in: archive, on: device, in: context, at: date)
        }
    }

    private func moment() throws -> Date {
        guard let at else { return .now }
        guard let date = try? Date(at, strategy: .iso8601) else {
            throw ValidationError("--at must be a date such as 2026-01-31T12:00:00Z")
        }
        return date
    }
}

extension WidgetRenderingMode: ExpressibleByArgument {}
