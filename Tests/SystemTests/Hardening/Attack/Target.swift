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
        port = UInt16(process.url.split(separator: ":").last ?? "") ?? 0
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
        let port = port
        return try await elsewhere {
            let socket = try RawSocket(port: port, tls: .init())
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
