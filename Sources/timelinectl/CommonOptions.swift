import ArgumentParser
import Foundation
import TimelineRuntime
import WidgetModel

/// The gateway's address and the caller's credentials; the environment supplies what is not stated.
struct CommonOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The gateway's origin (TIMELINE_GATEWAY_URL).", valueName: "url"))
    var url: String?

    @Option(help: ArgumentHelp("Certificates to trust (TIMELINE_GATEWAY_CA).", valueName: "file"))
    var ca: String?

    @Option(help: ArgumentHelp("Bearer token (TIMELINE_GATEWAY_TOKEN).", valueName: "token"))
    var token: String?

    @Flag(help: "Print JSON, one document per line.")
    var json = false

    var form: OutputForm { json ? .json : .text }

    /// A connection to the gateway. Throws `ValidationError` if the gateway's address is not
    /// stated.
    func connection(
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws -> AdvisedConnection {
        let configuration = try configuration(environment: environment)
        do throws(ConnectionError) {
            return try AdvisedConnection(configuration)
        } catch {
            throw ValidationError(error.message)
        }
    }

    /// Calls `body` with the gateway's service for an app; prints why it failed in the chosen form.
    func withService(
        of app: String, _ body: (GatewayService) async throws(GatewayFailure) -> Void
    ) async throws {
        let service = GatewayService(connection: try connection(), app: app)
        do throws(GatewayFailure) {
            try await body(service)
        } catch {
            throw Terminal.fail(error, as: form)
        }
    }

    /// Requests a document of an app, at a path below the app's, and prints it in the chosen form.
    func show<Document: Decodable>(
        _ path: String, of app: AppOption, text: (Document) -> String
    ) async throws {
        try await send("GET", path, of: app.required(), text: text)
    }

    /// Sends a request to a path below an app's, and prints the answer in the chosen form.
    func send<Document: Decodable>(
        _ method: String, _ path: String, of app: String, body: [UInt8]? = nil,
        contentType: String = "application/json", text: (Document) -> String
    ) async throws {
        try await withService(of: app) { service throws(GatewayFailure) in
            let answer = try await service.document(
                method, service.base + path, body: body, contentType: contentType)
            try Terminal.print(answer.value, as: form, text: text)
        }
    }

    /// The configuration of a connection to the gateway, with the caller's credentials. Throws
    /// `ValidationError` if the gateway's address is not stated.
    func configuration(
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws -> CurlConnection.Configuration {
        guard let url = url ?? environment["TIMELINE_GATEWAY_URL"], !url.isEmpty else {
            throw ValidationError("no gateway given; set --url or TIMELINE_GATEWAY_URL")
        }
        let ca = ca ?? environment["TIMELINE_GATEWAY_CA"]
        if let ca, !ca.isEmpty, !FileManager.default.isReadableFile(atPath: ca) {
            throw ValidationError("cannot read the certificates in \(ca)")
        }
        // A token read from a file usually ends its line.
        let stated = token ?? environment["TIMELINE_GATEWAY_TOKEN"] ?? ""
        let token = stated.trimmingCharacters(in: .whitespacesAndNewlines)
        var configuration = CurlConnection.Configuration(gateway: url)
        if let ca, !ca.isEmpty { configuration.caFile = ca }
        if !token.isEmpty { configuration.bearerToken = { token } }
        return configuration
    }
}

extension AdvisedConnection {
    /// A connection to a gateway, or to its admin port.
    init(_ configuration: CurlConnection.Configuration) throws(ConnectionError) {
        self.init(
            try CurlConnection(configuration),
            ConnectionAdvice(origin: configuration.gateway, ca: configuration.caFile))
    }
}

/// The app on whose behalf the command acts.
struct AppOption: ParsableArguments {
    @Option(
        help: ArgumentHelp("The app's bundle id (TIMELINE_GATEWAY_APP).", valueName: "bundle-id"))
    var app: String?

    /// The app, if it is stated. Throws `ValidationError` if the stated value is not an app id.
    func stated(
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws -> String? {
        guard let app = app ?? environment["TIMELINE_GATEWAY_APP"], !app.isEmpty else { return nil }
        try requireID(app, of: "an app")
        return app
    }

    /// The app. Throws `ValidationError` if it is not stated.
    func required(
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws -> String {
        guard let app = try stated(environment: environment) else {
            throw ValidationError("no app given; set --app or TIMELINE_GATEWAY_APP")
        }
        return app
    }
}

/// Throws `ValidationError` unless what a caller stated is an id. `owner` is what it names, with an
/// article.
func requireID(_ id: String, of owner: String) throws {
    guard Identifier.isValid(id) else {
        throw ValidationError("\(owner) id is 1 to 128 characters of A-Z a-z 0-9 . _ ~ -")
    }
}

/// The client on whose behalf the command acts.
struct ClientOption: ParsableArguments {
    @Option(help: ArgumentHelp("The client's id.", valueName: "id"))
    var client: String

    func validate() throws { try requireID(client, of: "a client") }
}

/// The client that the command is about.
struct ClientArgument: ParsableArguments {
    @Argument(help: "The client's id.")
    var client: String

    func validate() throws { try requireID(client, of: "a client") }
}

struct PageOptions: ParsableArguments {
    @Option(help: "Page size, 1 to 1000.")
    var limit = 100

    func validate() throws {
        guard (1...1_000).contains(limit) else {
            throw ValidationError("--limit must be 1 to 1000")
        }
    }

    /// The query of a page with what is stated of these. A value is validated or encoded before.
    func query(_ parts: [(name: String, value: String?)]) -> String {
        parts.reduce("limit=\(limit)") { query, part in
            part.value.map { "\(query)&\(part.name)=\($0)" } ?? query
        }
    }
}
