import Foundation
import GatewaySigning
import TimelineGatewayClient
import WidgetModel
import WidgetViews

extension Widget {
    /// Runs a program with this single widget: `@main` makes the widget its entry point (article
    /// "Creating a widget extension", "Add configuration details"). See ``WidgetExtensionProgram``.
    public static func main() async {
        await WidgetExtensionProgram.run { try WidgetDeclarations([Self().body]) }
    }
}

extension WidgetBundle {
    /// Runs a program with these widgets: `@main` makes the bundle its entry point (article
    /// "Creating a widget extension", "Create multiple widget extensions"). See
    /// ``WidgetExtensionProgram``.
    public static func main() async {
        await WidgetExtensionProgram.run { try WidgetDeclarations(Self()) }
    }
}

/// A widget extension as a standalone program, which keeps the timelines of its widgets current
/// until it is terminated. It is configured by environment variables:
///
/// | variable | meaning |
/// |---|---|
/// | `TIMELINE_GATEWAY_URL` | the gateway's origin |
/// | `TIMELINE_GATEWAY_CA` | certificates to trust, in PEM; default: the system's |
/// | `TIMELINE_GATEWAY_TOKEN` | the client's token, which names the client and its app |
/// | `TIMELINE_CLIENT_ARCHIVE` | the directory of its ``ClientArchive``; each extension has its own |
/// | `TIMELINE_CLIENT_SHARED` | `1` when other extensions register their own kinds for this client |
/// | `TIMELINE_CLIENT_LOCALE` | the locale in which widgets are drawn, such as `de_DE`; default: `en` |
/// | `TIMELINE_CLIENT_DYNAMIC_TYPE` | the size of texts, such as `xLarge`; default: `large` |
/// | `TIMELINE_CLIENT_STRINGS` | a string catalog, such as `Localizable.xcstrings`, with the translations of its texts; the file's name is the table's |
/// | `TIMELINE_CLIENT_REGISTRATION` | a file with the placed widgets, in the JSON form of a registration; default: an iPhone with each widget once, in its first family and with the default of each parameter |
///
/// It may be killed at any time: it resumes from its archive, which other processes can read to
/// show the widgets. It logs its actions and failures to standard error.
///
/// Other processes reach it with an ``ExtensionConnection``: it performs the intents of tapped
/// controls itself, or lets an ``AppListener`` perform those of the app.
///
/// With the argument `declarations` it prints what its code declares, as JSON in the form of a
/// catalog, and ends; `timelinectl catalog check` compares it with the catalog. With `previews` and
/// a directory it draws its `#Preview`s there.
public enum WidgetExtensionProgram {
    /// The reason why an extension cannot run.
    package struct Fault: Error, CustomStringConvertible {
        /// The message for a terminal, with the variable's name and never its value.
        package let description: String
    }

    /// The maximum count of equally configured widgets.
    private static let copiesMax = 100
    /// The largest registration that is read, bytes.
    private static let registrationBytesMax = 1024 * 1024
    /// The largest string catalog that is read, bytes.
    private static let stringsBytesMax = 16 * 1024 * 1024

    static func run(_ widgets: () throws -> WidgetDeclarations) async {
        do {
            let widgets = try widgets()
            let arguments = CommandLine.arguments.dropFirst()
            if arguments.first == "declarations" { return print(widgets.catalog.indented()) }
            if arguments.first == "previews" {
                let directory = URL(filePath: arguments.dropFirst().first ?? ".")
                for file in try await WidgetPreviews.render(to: directory) { print(file.path) }
                return
            }
            let client = try await client(
                widgets, environment: ProcessInfo.processInfo.environment)
            await client.run()
            // Another process uses the archive.
            exit(1)
        } catch {
            say("\(error)")
            exit(1)
        }
    }

    /// Creates the client that the environment describes.
    ///
    /// - Throws: ``Fault``; ``ConnectionError`` for an invalid address; or the error of a query
    ///   that is asked for a default.
    package static func client(
        _ widgets: WidgetDeclarations, environment: [String: String]
    ) async throws -> TimelineClient {
        func variable(_ name: String) throws(Fault) -> String {
            guard let value = environment[name], !value.isEmpty else {
                throw Fault(description: "\(name) is not set")
            }
            return value
        }
        var widgets = widgets
        if let path = environment["TIMELINE_CLIENT_STRINGS"], !path.isEmpty {
            let file = try? FileHandle(forReadingAtPath: path)?.read(upToCount: stringsBytesMax)
            let table = URL(filePath: path).deletingPathExtension().lastPathComponent
            guard let file, widgets.strings.add([UInt8](file), table: table) else {
                throw Fault(description: "the file of TIMELINE_CLIENT_STRINGS is no string catalog")
            }
        }
        let token = try variable("TIMELINE_GATEWAY_TOKEN")
            .trimmingCharacters(in: .whitespacesAndNewlines)
        let jws = try? JWS(parsing: Array(token.utf8), bytesMax: JWS.tokenBytesMax)
        let claims = jws.flatMap { try? JSONValue(parsing: $0.unverifiedPayload) }?.objectValue
        let registration: ClientRegistration
        if let path = environment["TIMELINE_CLIENT_REGISTRATION"], !path.isEmpty {
            registration = try read(path)
        } else {
            registration = try await ClientRegistration(
                platform: "iOS", widgets: defaultWidgets(widgets))
        }
        guard
            var configuration = TimelineClientConfiguration(
                app: claims?["app"]?.stringValue ?? "", client: claims?["sub"]?.stringValue ?? "",
                platform: registration.platform, osVersion: registration.osVersion,
                attributes: registration.attributes, delivery: registration.delivery,
                widgets: registration.widgets.flatMap {
                    Array(repeating: WidgetInfo($0), count: min($0.count, copiesMax))
                },
                observer: { event in text(event).map(say) })
        else { throw Fault(description: "TIMELINE_GATEWAY_TOKEN is not a client token") }
        configuration.acceptsRequests = true
        configuration.sharesClient = environment["TIMELINE_CLIENT_SHARED"] == "1"
        if let locale = environment["TIMELINE_CLIENT_LOCALE"], !locale.isEmpty {
            configuration.locale = Locale(identifier: locale)
        }
        if let size = environment["TIMELINE_CLIENT_DYNAMIC_TYPE"], !size.isEmpty {
            guard let known = DynamicTypeSize(rawValue: size) else {
                throw Fault(description: "TIMELINE_CLIENT_DYNAMIC_TYPE is no size, such as xLarge")
            }
            configuration.dynamicTypeSize = known
        }
        let archive = ClientArchive(directory: try variable("TIMELINE_CLIENT_ARCHIVE"))
        let connection = try CurlConnection(
            .init(
                gateway: variable("TIMELINE_GATEWAY_URL"),
                caFile: environment["TIMELINE_GATEWAY_CA"].flatMap { $0.isEmpty ? nil : $0 },
                bearerToken: { token }))
        return TimelineClient(
            configuration: configuration, widgets: widgets, connection: connection,
            verifier: PublishedKeyVerifier(connection: connection, app: configuration.app),
            archive: archive, app: AppConnection(archive: archive))
    }

    private static func read(_ path: String) throws(Fault) -> ClientRegistration {
        var what = "cannot be read"
        if let file = FileHandle(forReadingAtPath: path),
            let data = try? file.read(upToCount: registrationBytesMax)
        {
            do {
                var registration = try ClientRegistration.read(
                    JSONValue(parsing: Array(data)), limits: Limits()
                ).registration
                if registration.delivery.isEmpty { registration.delivery = [.stream] }
                return registration
            } catch {
                what = "is not a registration: \(error)"
            }
        }
        throw Fault(description: "the file of TIMELINE_CLIENT_REGISTRATION \(what)")
    }

    private static func defaultWidgets(
        _ widgets: WidgetDeclarations
    ) async throws -> [ConfiguredWidget] {
        var placed: [ConfiguredWidget] = []
        for widget in widgets.gallery {
            let family = widget.traits.supportedFamilies?.first ?? .systemSmall
            var one = ConfiguredWidget(kind: widget.kind, family: family.rawValue)
            for parameter in widget.parameters {
                one.parameters[parameter.name] = try await parameter.defaultValue() ?? .unset
            }
            placed.append(one)
        }
        return placed
    }

    private static func text(_ event: TimelineClientEvent) -> String? {
        switch event {
        case .registered(let warnings):
            (["registered"] + warnings.map { "  warning: \($0)" }).joined(separator: "\n")
        case .rebuilt(let widget, _): "\(widget.kind) \(widget.family.rawValue) rebuilt"
        case .misconfigured(let widget, let error):
            "\(widget.kind) \(widget.family.rawValue) misconfigured: \(error)"
        case .buildFailed(let widget, let reason):
            "\(widget.kind) \(widget.family.rawValue) not rebuilt: \(reason)"
        case .entriesTooClose(let widget, let seconds):
            "\(widget.kind) has entries \(Int(seconds)) s apart; WidgetKit asks for five minutes"
        case .interactionFailed(let widget, let reason):
            "\(widget.kind) \(widget.family.rawValue) not performed: \(reason)"
        case .recommendationsFailed(let kind, let reason):
            "\(kind) not recommended: \(reason)"
        case .controlRebuilt(let kind): "\(kind) rebuilt"
        case .controlFailed(let kind, let reason): "\(kind) not rebuilt: \(reason)"
        case .unverified(let failure): "a notification failed verification: \(failure)"
        case .failed(let failure): "\(failure)"
        case .archiveFailed(let failure): "\(failure)"
        case .connected, .notified, .relevanceInvalidated, .performed: nil
        }
    }

    private static func say(_ text: String) {
        FileHandle.standardError.write(Data((text + "\n").utf8))
    }
}
