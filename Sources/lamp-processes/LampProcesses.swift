import Foundation
import TimelineRuntime

/// The processes of one app, by the first argument: its widget extension or one for each widget,
/// the app in which a person switches the lamp, a screen on which widgets are tapped, and the
/// handlers of pushes. All share the extension's archive; where that is,
/// and who they are for the gateway, is said as ``WidgetExtensionProgram`` has it.
@main
struct LampProcesses {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        switch arguments.first {
        case "extension", "declarations": await LampWidgets.main()
        case "light": await LightWidget.main()
        case "room": await RoomWidget.main()
        case "app":
            let call = try tapped(LightWidget.kind).call
            try await WidgetDeclarations(LampWidgets(), intents: [SwitchLamp.self]).perform(call)
        case "listen": try await listen()
        case "tap":
            let (widget, environment, call) = try tapped(arguments[2])
            try await reach { try await $0.interact(with: call, of: widget, in: environment) }
        case "open":
            let (widget, environment, _) = try tapped(RoomWidget.kind)
            try await reach { try await $0.open(widget, in: environment) }
        case "reload": try await reach { try await $0.reloadTimelines(ofKind: arguments[2]) }
        case "push": try await registrar().register(WidgetPushInfo(token: Data(arguments[2].utf8)))
        case "controls":
            try await registrar().register([
                ControlInfo(
                    id: arguments[2], kind: "com.example.lamp.switch",
                    pushInfo: ControlPushInfo(token: Data(arguments[2].utf8)))
            ])
        default: exit(64)
        }
    }

    private static var environment: [String: String] { ProcessInfo.processInfo.environment }

    private static var archive: ClientArchive {
        ClientArchive(directory: environment["TIMELINE_CLIENT_ARCHIVE"] ?? "")
    }

    /// The control that the archive shows for a widget of this kind.
    private static func tapped(
        _ kind: String
    ) throws -> (widget: WidgetInfo, environment: WidgetEnvironment, call: IntentCall) {
        let widget = WidgetInfo(kind: kind, family: .systemSmall)
        let environment = try WidgetContextRules().environment(
            of: widget, with: archive.traits(of: widget), at: .homeScreen, on: WidgetDevice(.iOS))
        switch archive.node(of: widget, at: .now, in: environment)?.content {
        case .toggle(_, let call, _)?, .button(let call, _)?: return (widget, environment, call)
        default: exit(65)
        }
    }

    /// Ends with 69 when the extension does not run.
    private static func reach(
        _ request: @Sendable (ExtensionConnection) async throws -> Void
    ) async throws {
        do {
            try await request(ExtensionConnection(archive: archive))
        } catch is ProcessUnreachable {
            exit(69)
        }
    }

    /// The app that runs: it performs its intents, and notes what it is opened with.
    private static func listen() async throws {
        let listener = try AppListener(
            archive: archive, intents: WidgetDeclarations(LampWidgets(), intents: [RingBell.self])
        ) { try Lamp.current.note("opened", $0.widget.kind) }
        try await Task.sleep(for: .seconds(3_600))
        withExtendedLifetime(listener) {}
    }

    private static func registrar() throws -> ClientRegistrar {
        let token = environment["TIMELINE_GATEWAY_TOKEN"]
        let connection = try CurlConnection(
            .init(
                gateway: environment["TIMELINE_GATEWAY_URL"] ?? "",
                caFile: environment["TIMELINE_GATEWAY_CA"], bearerToken: { token }))
        guard
            let registrar = ClientRegistrar(
                app: "com.example.lamp", client: "my-phone", connection: connection,
                environment: .sandbox, archive: archive)
        else { exit(66) }
        return registrar
    }
}
