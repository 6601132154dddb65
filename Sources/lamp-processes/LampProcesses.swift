import Foundation
import TimelineClient
import TimelineClientHTTP

/// The processes of one app, by the first argument: its widget extension, the app in which a person
/// switches the lamp, and the handlers of pushes. All share the extension's archive; where that is,
/// and who they are for the gateway, is said as ``WidgetExtensionProgram`` has it.
@main
struct LampProcesses {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        switch arguments.first {
        case "extension": await LampWidgets.main()
        case "app": try await useToggle()
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

    /// A person uses the toggle that the archive shows, in the app.
    private static func useToggle() async throws {
        let widget = WidgetInfo(kind: LightWidget.kind, family: .systemSmall)
        let environment = try WidgetContextRules().environment(
            of: widget, with: archive.traits(of: widget), at: .homeScreen, on: WidgetDevice(.iOS))
        guard
            case .toggle(_, let call, _)? =
                archive.node(of: widget, at: .now, in: environment)?.content
        else { exit(65) }
        try await WidgetRuntime(LampWidgets(), intents: [SwitchLamp.self]).perform(call)
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
