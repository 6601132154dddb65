import Foundation
import TimelineRuntime

/// The processes of one app, by the first argument: its widget extension or one for each widget,
/// the app in which a person switches the lamp, and the handlers of pushes. All share the
/// extension's archive; where that is, and who they are for the gateway, is said as
/// ``WidgetExtensionProgram`` has it.
@main
struct LampProcesses {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        switch arguments.first {
        case "extension", "declarations", "previews": await LampWidgets.main()
        case "light": await LightWidget.main()
        case "room": await RoomWidget.main()
        case "app":
            let app = try WidgetDeclarations(LampWidgets(), intents: [SwitchLamp.self])
            try await app.perform(shownSwitch())
        case "listen": try await listen()
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

    /// The call of the switch that the archive shows.
    private static func shownSwitch() throws -> IntentCall {
        let widget = WidgetInfo(kind: LightWidget.kind, family: .systemSmall)
        let environment = try WidgetContextRules().environment(
            of: widget, with: archive.traits(of: widget), at: .homeScreen, on: WidgetDevice(.iOS))
        let node = archive.node(of: widget, at: .now, in: environment)
        guard case .toggle(_, let call, _)? = node?.content else { exit(65) }
        return call
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
