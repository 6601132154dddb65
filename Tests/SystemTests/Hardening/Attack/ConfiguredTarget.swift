import Foundation
import GatewaySigning
import GatewayTestSupport
import WidgetModel

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
        port = UInt16(process.url.split(separator: ":").last ?? "") ?? 0
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
