import ArgumentParser
import Foundation
import TimelineRuntime

struct ExtensionCommand: AsyncParsableCommand {
    enum Action: String, ExpressibleByArgument, CaseIterable {
        case gallery, stack, controls, tap, mirror, open, reload, device
    }

    static let configuration = CommandConfiguration(
        commandName: "extension",
        abstract: "Use a running widget extension: its gallery, controls and links.",
        discussion: """
            Reaches the extension through the socket in its archive, on this machine and as the \
            same user. `gallery` shows what people can add, once the app was launched; `stack` the \
            Smart Stack; `controls` the placed controls. `tap` uses a button or toggle, or the \
            control with --id, `mirror` does it from a Mac that mirrors the widget, `open` taps \
            elsewhere, and `reload` asks for new timelines as an app may. `device` tells whether \
            the app is in the foreground, where no reload counts, and what changed in the system.

            Examples:
              timelinectl extension gallery state --location lockScreen
              timelinectl extension stack state --json
              timelinectl extension tap state --kind com.mygame.tasks --control 2
              timelinectl extension tap state --id lamp-1
              timelinectl extension device state --foreground --changed locale
            """)

    @Argument(help: "The request to the extension.")
    var action: Action

    @Argument(help: "The extension's archive.")
    var directory: String

    @Option(help: "The kind of the widget. Default: that of the first placed one.")
    var kind: String?

    @Option(help: "The family of the widget, such as systemSmall.")
    var family: String?

    @Option(help: "Location, such as homeScreen, lockScreen or smartStack.")
    var location = "homeScreen"

    @Option(help: "Which of the widget's buttons and toggles, from 1.")
    var control = 1

    @Option(help: "The id of a placed control to tap.")
    var id: String?

    @Flag(inversion: .prefixedNo, help: "Whether the app is in the foreground from now on.")
    var foreground: Bool?

    @Option(help: "What changed in the system, such as locale.")
    var changed: ReloadReason.SystemChange?

    @Flag(help: "Print JSON, one document per line.")
    var json = false

    func run() async throws {
        let place = try WidgetLocation(stated: location)
        let archive = ClientArchive(directory: directory)
        let connection = ExtensionConnection(archive: archive)
        do {
            switch action {
            case .gallery:
                show(try await connection.ask(.gallery, ["location": .string(location)]))
            case .stack: show(try await connection.ask(.smartStack))
            case .controls: show(try await connection.ask(.controls))
            case .reload: try await connection.reloadTimelines(ofKind: kind)
            case .open:
                let (widget, environment) = try shown(at: place)
                try await connection.open(widget, in: environment)
            case .device:
                let activity = foreground.map { $0 ? AppActivity.foreground : [] }
                try await connection.set(activity: activity, changed: changed)
            case .tap:
                if let id { return try await connection.useControl(id) }
                let (widget, environment) = try shown(at: place)
                let call = try call(in: archive.node(of: widget, at: .now, in: environment))
                show(try await connection.interact(with: call, of: widget, in: environment))
            case .mirror:
                let mirror = MirroredWidgets(host: connection)
                try await mirror.update()
                let (widget, environment) = try shown(at: .iPhoneWidgetsOnMac)
                let call = try call(in: await mirror.shown(widget, in: environment)?.node)
                try await mirror.interact(with: call, of: widget, in: environment)
                show(await mirror.shown(widget, in: environment))
            }
        } catch let error as ValidationError {
            throw error
        } catch {
            // The reason may quote what a person or an app chose.
            Terminal.complain(TextBlock.line("timelinectl: \(error)"))
            throw error is ProcessUnreachable ? ExitStatus.unreachable : ExitStatus.refused
        }
    }

    /// Returns the first placed widget that matches, in its context at a location.
    private func shown(at location: WidgetLocation) throws -> (WidgetInfo, WidgetEnvironment) {
        let placed = try PlacedSelection(directory, kind: kind, family: family)
        guard let widget = placed.widgets.first?.widget else {
            throw ValidationError("no widget is placed in \(directory); for a control use --id")
        }
        let environment = try WidgetContextRules().environment(
            of: widget, with: placed.archive.traits(of: widget), at: location, on: placed.device)
        return (widget, environment)
    }

    private func call(in node: WidgetNode?) throws -> IntentCall {
        let calls = node?.calls ?? []
        guard calls.indices.contains(control &- 1) else {
            throw ValidationError(
                "--control: no \(control), the widget shows \(calls.count) buttons and toggles")
        }
        return calls[control - 1]
    }

    /// Prints what a widget shows after a tap.
    private func show(_ shown: ShownWidget?) {
        guard let shown else { return }
        show([["isUpdating": .bool(shown.isUpdating), "content": shown.node.json]])
    }

    /// Prints the widgets of a gallery, the cards of a stack, or the controls.
    private func show(_ answer: JSONValue) {
        let entries = (answer.arrayValue ?? []).compactMap(\.objectValue)
        Terminal.print(answer, as: json ? .json : .text) {
            entries.isEmpty ? "none" : entries.map(Self.text).joined(separator: "\n\n")
        }
    }

    private static func text(_ entry: JSONObject) -> String {
        var blocks: [TextBlock] = []
        for member in entry.members where member.name != "preview" && member.name != "content" {
            blocks.append(TextBlock(TextBlock.line("\(member.name): \(member.value.text)")))
        }
        if let node = (entry["preview"] ?? entry["content"]).flatMap({ WidgetNode($0) }) {
            blocks.append(node.drawing(at: .now).framed)
        }
        return TextBlock.above(blocks).lines.joined(separator: "\n")
    }
}

extension ReloadReason.SystemChange: ExpressibleByArgument {}
