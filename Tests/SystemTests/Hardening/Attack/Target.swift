import Foundation
import GatewaySigning
import GatewayTestSupport
import WidgetModel

/// The daemon under attack: one for all tests, with a catalog, keys to mint tokens with, and a
/// bystander whose stream must not end.
final class Target: Sendable {
    static let app = "com.mygame"
    /// A mark in every value, identifier and payload that must never get into the log.
    static let secret = "s3cr3t"
    /// A part of every push token, which must not get into the log, either.
    static let pushToken = "feedc0de"

    static func shared() async throws -> Target { try await made.value }

    private static let made = Task { try await elsewhere { try Target() } }

    let process: GatewayProcess
    let port: UInt16
    let issuer: Issuer
    let bystander: Bystander
    /// A token with every scope of a backend.
    let backend: String

    private init() throws {
        process = try GatewayProcess(environment: ["TIMELINE_GATEWAY_LOG_LEVEL": "trace"])
        port = process.port
        let token = try process.token(app: Self.app, scope: "operator")
        issuer = try Issuer(likeThatOf: token, keysIn: process.data + "/issuer")
        backend = try issuer.token(scope: Issuer.backendScopes)
        try process.http().putCatalog(Catalogs.game, app: Self.app, token: backend)
        bystander = try Bystander(process, issuer)
    }

    func clientToken(_ client: String, attributes: JSONValue? = nil) throws -> String {
        try issuer.token(scope: "client", sub: client, attributes: attributes)
    }

    /// Sends a request over a connection of its own.
    func send(
        _ method: String, _ path: String, token: String?, type: String? = nil,
        headers: [(String, String)] = [], _ body: JSONValue
    ) async throws -> TestHTTPAnswer {
        try await send(
            method, path, token: token, type: type, headers: headers, text: body.text)
    }

    func send(
        _ method: String, _ path: String, token: String?, type: String? = nil,
        headers: [(String, String)] = [], text: String? = nil
    ) async throws -> TestHTTPAnswer {
        var headers = headers
        if let type { headers.append(("Content-Type", type)) }
        let path = path.hasPrefix("/") ? path : "/v1/apps/\(Self.app)/\(path)"
        return try await process.http().send(
            method, path, token: token, headers: headers, body: text)
    }

    func post(_ event: JSONValue) async throws -> TestHTTPAnswer {
        try await send(
            "POST", "changes", token: backend, type: "application/cloudevents+json", event)
    }

    func post(batch: [JSONValue]) async throws -> TestHTTPAnswer {
        try await send(
            "POST", "changes", token: backend, type: "application/cloudevents-batch+json",
            .array(batch))
    }

    @discardableResult
    func register(_ client: String, character: String? = nil) async throws -> TestHTTPAnswer {
        try await send(
            "PUT", "clients/\(client)", token: backend, Documents.registration(character ?? client))
    }

    /// Sends bytes unchanged over TLS and reads the answers.
    ///
    /// - Parameter answers: The number of answers to read; `nil` reads to the connection's end.
    func converse(_ bytes: [UInt8], answers: Int? = nil) async throws -> RawConversation {
        try await elsewhere { [port] in
            let socket = try RawClient(port: port, .init("http/1.1")).handshake()
            socket.send(bytes)
            let (received, isClosed) = socket.readUntil { bytes in
                guard let answers else { return false }
                return RawAnswer.all(in: bytes).count >= answers
            }
            return RawConversation(answers: RawAnswer.all(in: received), isClosed: isClosed)
        }
    }

    /// Returns everything that the daemon has written to standard error.
    func log() -> String {
        let path = "/proc/\(process.pid)/fd/2"
        return (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    }
}

/// A daemon with a configuration file: issuers with limits, and client certificates.
final class ConfiguredTarget: Sendable {
    static let audience = "https://gateway.example"

    static func shared() async throws -> ConfiguredTarget { try await made.value }

    private static let made = Task { try await elsewhere { try ConfiguredTarget() } }

    let process: GatewayProcess
    let port: UInt16
    let authority: TestCertificate
    /// An issuer for every app and every scope.
    let operations: Issuer
    /// An issuer for `com.a` only, and not for the scope operator.
    let limited: Issuer
    /// An issuer for `com.b` only, with the same `iss` as ``limited``.
    let sibling: Issuer

    private init() throws {
        let directory = try GatewayProcess.temporaryDirectory()
        let ca = try TestCertificate("ca", in: directory)
        let server = try TestCertificate(
            "server", in: directory, issuer: ca, alternativeNames: "IP:127.0.0.1,DNS:localhost")
        authority = ca
        func issuer(_ name: String, _ iss: String) throws -> Issuer {
            let key = try SigningKey(generating: .edDSA)
            try Data(JWKSet([key.publicKey]).serialized)
                .write(to: URL(fileURLWithPath: "\(directory)/\(name).json"))
            return Issuer(iss: iss, aud: Self.audience, key: key)
        }
        operations = try issuer("operations", "https://operations.example")
        limited = try issuer("limited", "https://teams.example")
        sibling = try issuer("sibling", "https://teams.example")
        let configuration = """
            publicURL: \(Self.audience)
            tls:
              certificate: \(server.certificate)
              key: \(server.key)
              clientCA: \(ca.certificate)
              clientCertificates: optional
            issuers:
              - iss: https://operations.example
                apps: ["*"]
                scopes: [catalog:write, changes:write, client, clients:write, operator, tokens:issue]
                keys: \(directory)/operations.json
              - iss: https://teams.example
                apps: [com.a]
                scopes: [catalog:write, changes:write, client]
                keys: \(directory)/limited.json
              - iss: https://teams.example
                apps: [com.b]
                scopes: [catalog:write]
                keys: \(directory)/sibling.json
            certificates:
              - uri: spiffe://example/backend
                app: com.a
                scopes: [changes:write, catalog:write]
            """
        let file = "\(directory)/gateway.yaml"
        try configuration.write(toFile: file, atomically: true, encoding: .utf8)
        process = try GatewayProcess(configuration: file)
        port = process.port
        for app in ["com.a", "com.b"] {
            let http = TestHTTP(url: process.url, ca: ca.certificate)
            let answer = try http.request(
                "PUT", "/v1/apps/\(app)/catalog",
                token: operations.token(app: app, scope: "catalog:write"),
                body: #"{"app": "\#(app)", "widgets": []}"#)
            guard answer.status == 201 else { throw TestFailure(answer.text) }
        }
    }

    func http() -> TestHTTP { TestHTTP(url: process.url, ca: authority.certificate) }

    /// Reads the catalog of an app with a token.
    func catalog(_ app: String, _ token: String) async throws -> TestHTTPAnswer {
        try await http().send("GET", "/v1/apps/\(app)/catalog", token: token)
    }
}
