import Foundation
import GatewaySigning
import GatewayTLS
import GatewayTestSupport
import Testing
import WidgetModel

/// An issuer whose keys are at a URL.
@Suite(.alone) struct IssuerKeysTests {
    @Test func `tokens of an issuer with a URL are accepted, also while it is down`() throws {
        let configuration = try GatewayConfiguration()
        let folder = configuration.folder
        let key = try SigningKey()
        let server = try KeySetServer(
            in: folder, configuration.certificates,
            keys: JWKSet([key.publicKey]).serialized)
        try configuration.write([
            "issuers:", "  - iss: https://accounts.test", "    apps: [\"*\"]",
            "    scopes: [catalog:write]", "    keys: \(server.url)",
            "issuerKeys:", "  allowedRanges: [127.0.0.0/8, '::1']",
            "  ca: \(configuration.certificates.ca)", "publicURL: https://gateway.test",
        ])
        let gateway = try GatewayProcess(data: folder, configuration: configuration.file)
        func token(_ scopes: Set<Scope>, app: String, key: SigningKey) throws -> String {
            try TokenIssuer(
                key: key, iss: "https://accounts.test", aud: "https://gateway.test/"
            )
            .issue(
                sub: "backend", app: app, scopes: scopes, ttl: 600, attributes: [:],
                now: Int64(Date().timeIntervalSince1970))
        }
        let put = try gateway.http().request(
            "PUT", "/v1/apps/com.a/catalog",
            token: token([.catalogWrite], app: "com.a", key: key),
            body: #"{"app": "com.a", "widgets": []}"#)
        #expect(put.status == 201)
        let stranger = try gateway.http().request(
            "GET", "/v1/apps/com.a/catalog",
            token: token([.catalogWrite], app: "com.a", key: SigningKey()))
        #expect(stranger.status == 401)
        #expect(stranger.text.contains("token-unknown-key"))

        server.stop()
        try gateway.restart()
        let after = try gateway.http().request(
            "GET", "/v1/apps/com.a/catalog",
            token: token([.catalogWrite], app: "com.a", key: key))
        #expect(after.status == 200)
        #expect(gateway.terminate() == .status(0))
    }
}
