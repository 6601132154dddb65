import ArgumentParser
import Foundation
import TimelineClient

/// Shows a client's widgets the way its device does.
struct ShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show a client's widgets from its archive.",
        discussion: """
            Reads the directory in which a client of this SDK keeps its timelines, and draws each \
            placed widget in one of its contexts. No code of the app runs, and no gateway is asked: \
            this is what a screen would show. Where no context is asked for, it is the first that \
            the widget has.

            A widget is fresh, stale (it is to be built anew, as far as the archive knows) or a \
            placeholder (nothing was built that could be shown here). ☑ and ☐, or ━● and ●━, are \
            toggles, ( ) buttons, < > links, [ ] images, ▓ colours, ░ backgrounds, and ▒ hides something. A toggle whose look is the \
            app's own is shown as the app draws it. A widget that nobody places is drawn as often as \
            the Smart Stack shows it.

            Examples:
              timelinectl show state/device-1
              timelinectl show state/device-1 --location lockScreen --locked
              timelinectl show state/device-1 --mode accented --dark
              timelinectl show state/device-1 --kind com.mygame.quests --json
            """)

    @Argument(help: "The client's archive.")
    var directory: String

    @Option(help: "Where the widgets are, such as homeScreen, lockScreen or smartStack.")
    var location: String?

    @Option(help: "How they are coloured: fullColor, accented or vibrant.")
    var mode: WidgetRenderingMode?

    @Flag(help: "The device is locked, and hides what is sensitive.")
    var locked = false

    @Flag(help: "Light on dark.")
    var dark = false

    @Flag(name: .customLong("always-on"), help: "Always On shows them, with little light.")
    var isAlwaysOn = false

    @Option(help: "Only widgets of this kind.")
    var kind: String?

    @Option(
        help: ArgumentHelp(
            "The moment, as 2026-01-31T12:00:00Z; now by default.", valueName: "date"))
    var at: String?

    @Flag(help: "Print JSON, one document a line for each widget.")
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
            throw ValidationError("\(directory) is no archive of a client")
        }
        guard let device = client.device else {
            throw ValidationError(
                "\(directory) is of a client that did not register yet as a device with widgets")
        }
        let context = WidgetReport.Context(
            location: location.map(WidgetLocation.init(rawValue:)), mode: mode, isLocked: locked,
            isDark: dark, isAlwaysOn: isAlwaysOn)
        let date = try moment()
        return client.widgets.filter { kind == nil || $0.widget.kind == kind }.flatMap {
            WidgetReport.all(of: $0, in: archive, on: device, in: context, at: date)
        }
    }

    private func moment() throws -> Date {
        guard let at else { return .now }
        guard let date = try? Date(at, strategy: .iso8601) else {
            throw ValidationError("--at is a date such as 2026-01-31T12:00:00Z")
        }
        return date
    }
}

extension WidgetRenderingMode: ExpressibleByArgument {}
