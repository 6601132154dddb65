import GatewaySigning
import GatewayTestSupport
import Testing
import WidgetModel

/// Issuers that exceed their rights in the configuration, and client certificates.
@Suite("Issuer and certificate attacks")
struct IssuerAttackTests {
    @Test("What the tests start from is believed")
    func control() async throws {
        let target = try await ConfiguredTarget.shared()
        for (issuer, app) in [
            (target.operations, "com.a"), (target.limited, "com.a"), (target.sibling, "com.b"),
        ] {
            let token = try issuer.token(app: app, scope: "catalog:write")
            #expect(try await target.catalog(app, token).status == 200)
        }
    }

    @Test("An issuer that exceeds its rights is refused, the app existing or not")
    func exceededRights() async throws {
        let target = try await ConfiguredTarget.shared()
        let (operations, limited, sibling) = (target.operations, target.limited, target.sibling)
        let write = "catalog:write"
        let borrowed = try sibling.token(
            header: ["alg": "EdDSA", "kid": .string(limited.kid)],
            claims: limited.claims(app: "com.a", scope: write))
        let impostor = Issuer(
            iss: operations.iss, aud: ConfiguredTarget.audience, key: sibling.key)
        for (app, token, status, code) in [
            ("com.b", try limited.token(app: "com.b", scope: write), 403, "foreign-app"),
            ("com.a", try sibling.token(app: "com.a", scope: write), 403, "foreign-app"),
            ("com.s3cr3t", try limited.token(app: "com.s3cr3t", scope: write), 403, "foreign-app"),
            ("com.a", try limited.token(app: "com.a", scope: "operator"), 403, "foreign-scope"),
            (
                "com.a", try limited.token(app: "com.a", scope: "catalog:write clients:write"),
                403, "foreign-scope"
            ),
            ("com.a", try limited.token(app: "*", scope: write), 403, "wildcard-app"),
            ("com.a", try operations.token(app: "*", scope: write), 403, "wildcard-app"),
            ("com.a", borrowed, 401, "bad-signature"),
            ("com.a", try impostor.token(app: "com.a", scope: write), 401, "unknown-key"),
        ] as [(String, String, Int, String)] {
            expectRefusal(try await target.catalog(app, token), status, "token-\(code)")
        }
    }

    @Test("Tokens of the gateway's own issuer are not believed unless it is configured")
    func localIssuer() async throws {
        let target = try await ConfiguredTarget.shared()
        let token = try target.process.token(app: "com.a", scope: "catalog:write")
        expectRefusal(try await target.catalog("com.a", token), 401, "token-unknown-issuer")
        let order = try await target.http().send(
            "POST", "/v1/apps/com.a/tokens",
            token: target.operations.token(app: "com.a", scope: "tokens:issue"),
            body: #"{"sub": "a"}"#)
        expectRefusal(order, 403, "no-local-issuer", says: "configuration")
    }

    /// Requests a path over a connection with a client certificate; `nil` when there is no answer.
    private func ask(
        _ identity: TestCertificate, _ path: String
    ) async throws -> RawAnswer? {
        let port = try await ConfiguredTarget.shared().port
        let files = (identity.certificate, identity.key)
        return try await elsewhere {
            let client = try RawClient(port: port, .init("http/1.1", certificate: files))
            guard let socket = try? client.handshake() else { return nil }
            socket.send("GET \(path) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            let read = socket.readUntil { !RawAnswer.all(in: $0).isEmpty }
            return RawAnswer.all(in: read.bytes).first
        }
    }

    @Test("A client certificate grants what its URI is configured for, and nothing more")
    func certificate() async throws {
        let target = try await ConfiguredTarget.shared()
        let directory = try GatewayProcess.temporaryDirectory()
        let authority = target.authority
        let backend = try TestCertificate(
            "backend", in: directory, issuer: authority,
            alternativeNames: "URI:spiffe://example/backend")
        let catalog = "/v1/apps/com.a/catalog"
        #expect(try await ask(backend, catalog)?.status == 200)
        expectRefusal(
            try #require(try await ask(backend, "/v1/apps/com.b/catalog")), 403, "wrong-app")
        expectRefusal(
            try #require(try await ask(backend, "/v1/apps/com.a/clients")), 403,
            "insufficient-scope")
        let stranger = try TestCertificate(
            "stranger", in: directory, issuer: authority,
            alternativeNames: "URI:spiffe://example/backend/x,DNS:spiffe://example/backend")
        expectRefusal(try #require(try await ask(stranger, catalog)), 401, "token-missing")
    }

    @Test("A client certificate of an unknown CA is refused in the handshake")
    func unknownCA() async throws {
        let directory = try GatewayProcess.temporaryDirectory()
        let authority = try TestCertificate("ca", in: directory)
        let backend = try TestCertificate(
            "backend", in: directory, issuer: authority,
            alternativeNames: "URI:spiffe://example/backend")
        #expect(try await ask(backend, "/v1/apps/com.a/catalog") == nil)
        let own = try TestCertificate(
            "own", in: directory, alternativeNames: "URI:spiffe://example/backend")
        #expect(try await ask(own, "/v1/apps/com.a/catalog") == nil)
    }

    @Test("A certificate named in a header is not looked at")
    func certificateHeader() async throws {
        let target = try await ConfiguredTarget.shared()
        let answer = try await target.http().send(
            "GET", "/v1/apps/com.a/catalog",
            headers: [
                ("X-Forwarded-Client-Cert", "URI=spiffe://example/backend"),
                ("X-SSL-Client-S-DN", "CN=backend"), ("Client-Cert", ":MIIB:"),
            ])
        expectRefusal(answer, 401, "token-missing")
    }
}
