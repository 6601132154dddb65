import COpenSSL
import GatewaySigning
import GatewayTestSupport
import Testing
import WidgetModel

/// Tokens that must not be accepted, although each of them is nearly valid.
@Suite("Token attacks", .othersUnaffected)
struct TokenAttackTests {
    private func use(_ token: String) async throws -> TestHTTPAnswer {
        try await Target.shared().send("GET", "catalog", token: token)
    }

    private func expectInvalid(
        _ token: String, _ code: String, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let answer = try await use(token)
        expectRefusal(answer, 401, code, sourceLocation: sourceLocation)
        let challenge = answer.header("www-authenticate") ?? ""
        #expect(
            challenge.contains(#"error="invalid_token""#), "\(challenge)",
            sourceLocation: sourceLocation)
    }

    private func token(_ others: JSONObject) async throws -> String {
        try await Target.shared().issuer.token(scope: "catalog:write", others)
    }

    @Test("What the tests start from is believed")
    func control() async throws {
        #expect(try await use(try await token([:])).status == 200)
    }

    @Test("An expired token is 401")
    func expired() async throws {
        let now = Issuer.now
        for age: Int64 in [120, 3600, now - 60] {
            try await expectInvalid(
                try await token(["iat": .integer(now - age - 60), "exp": .integer(now - age)]),
                "token-expired")
        }
    }

    @Test("A token that is not valid yet is 401")
    func notYetValid() async throws {
        let later = JSONValue.integer(Issuer.now + 600)
        try await expectInvalid(try await token(["nbf": later]), "token-not-yet-valid")
        try await expectInvalid(try await token(["iat": later]), "token-not-yet-valid")
    }

    @Test("A token of an issuer nobody configured is 401")
    func foreignIssuer() async throws {
        try await expectInvalid(
            try await token(["iss": "https://s3cr3t.example"]), "token-unknown-issuer")
    }

    @Test("A token that another key signed under the right names is 401")
    func foreignKey() async throws {
        let issuer = try await Target.shared().issuer
        let other = Issuer(
            iss: issuer.iss, aud: issuer.aud, key: try SigningKey(generating: .edDSA))
        try await expectInvalid(try other.token(scope: "catalog:write"), "token-unknown-key")
        let claims = issuer.claims(scope: "catalog:write")
        let forged = try other.token(
            header: ["alg": "EdDSA", "typ": "JWT", "kid": .string(issuer.kid)], claims: claims)
        try await expectInvalid(forged, "token-bad-signature")
    }

    @Test(
        "A token for another audience is 401",
        arguments: [
            "https://s3cr3t.example", "https://127.0.0.1", "", [], ["https://a", "https://b"],
        ] as [JSONValue])
    func wrongAudience(_ audience: JSONValue) async throws {
        let answer = try await use(try await token(["aud": audience]))
        #expect(answer.status == 401)
        let code = answer["type"]?.stringValue?.split(separator: ":").last.map(String.init) ?? ""
        #expect(["token-wrong-audience", "token-bad-claims"].contains(code))
    }

    @Test("A token with alg none is 401", arguments: ["none", "None", "nOnE", ""])
    func algNone(_ alg: String) async throws {
        let issuer = try await Target.shared().issuer
        let claims = issuer.claims(scope: "catalog:write")
        let header: JSONValue = ["alg": .string(alg), "typ": "JWT", "kid": .string(issuer.kid)]
        for signature in [[], [0], try issuer.key.sign([1])] as [[UInt8]] {
            let token = try issuer.token(header: header, claims: claims, signature: signature)
            let answer = try await use(token)
            #expect(answer.status == 401)
            #expect(answer.header("content-type") == ProblemDetails.mediaType)
        }
    }

    @Test("A token whose public key was used as an HMAC secret is 401")
    func publicKeyAsSecret() async throws {
        let issuer = try await Target.shared().issuer
        let header: JSONValue = ["alg": "HS256", "typ": "JWT", "kid": .string(issuer.kid)]
        let claims = issuer.claims(scope: "catalog:write")
        let input =
            Base64.url.encode(header.serialized) + [UInt8(ascii: ".")]
            + Base64.url.encode(claims.serialized)
        let jwk = issuer.key.publicKey.jwk
        let raw = Base64.url.decode(Array((jwk["x"]?.stringValue ?? "").utf8)) ?? []
        for secret in [try issuer.key.publicKey.pem(), raw, JSONValue.object(jwk).serialized] {
            var digest = [UInt8](repeating: 0, count: 32)
            var count: UInt32 = 0
            _ = HMAC(
                EVP_sha256(), secret, Int32(secret.count), input, input.count, &digest, &count)
            let token = try issuer.token(header: header, claims: claims, signature: digest)
            try await expectInvalid(token, "token-wrong-algorithm")
        }
    }

    @Test("A token with any bit of its parts changed is 401")
    func tampered() async throws {
        let token = Array(try await token([:]).utf8)
        let dots = token.indices.filter { token[$0] == UInt8(ascii: ".") }
        for place in [dots[0] - 5, dots[0] + 20, dots[1] - 5, dots[1] + 10, token.count - 20] {
            var other = token
            other[place] = other[place] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            let answer = try await use(String(decoding: other, as: UTF8.self))
            #expect(answer.status == 401)
            #expect(answer.header("content-type") == ProblemDetails.mediaType)
        }
    }

    @Test("A token cut short or with something behind it is 401")
    func truncated() async throws {
        let token = try await token([:])
        let parts = token.split(separator: ".").map(String.init)
        let wrong = [
            String(token.dropLast(10)), parts[0], parts[0] + "." + parts[1],
            parts[0] + "." + parts[1] + ".", token + ".", token + "." + parts[2], "." + token,
            token + "AAAA", token + "=", "..", "a.b.c", token + " " + token, token + ", " + token,
        ]
        for token in wrong {
            let answer = try await use(token)
            #expect(answer.status == 401)
            #expect(answer.header("content-type") == ProblemDetails.mediaType)
        }
    }

    @Test("A token over 8 KiB is 401, one over all header bounds is 431")
    func oversized() async throws {
        let padding = String(repeating: "s3cr3t", count: 1_500)
        try await expectInvalid(try await token(["x": .string(padding)]), "token-too-large")
        let huge = String(repeating: "s3cr3t", count: 5_000)
        let answer = try await use(try await token(["x": .string(huge)]))
        expectRefusal(answer, 431, "headers-too-large")
    }

    @Test(
        "A token without a required claim, or with one of another type, is 401",
        arguments: [
            "iss", "aud", "app", "sub", "scope", "exp",
        ])
    func missingClaim(_ claim: String) async throws {
        for value in [nil, 17, ["x"], true, [:]] as [JSONValue]
        where !(claim == "exp" && value == 17 || claim == "scope" && value == ["x"]) {
            let answer = try await use(try await token(Self.only(claim, value)))
            #expect(answer.status == 401, "\(claim): \(value)")
        }
    }

    /// Returns an object with one member.
    private static func only(_ name: String, _ value: JSONValue) -> JSONObject {
        var object = JSONObject()
        object[name] = value
        return object
    }

    @Test("A token with crit, a foreign typ or two members of one name is 401")
    func strangeHeaders() async throws {
        let issuer = try await Target.shared().issuer
        let claims = issuer.claims(scope: "catalog:write")
        let kid = JSONValue.string(issuer.kid)
        for header in [
            ["alg": "EdDSA", "kid": kid, "crit": ["exp"]],
            ["alg": "EdDSA", "kid": kid, "typ": "timeline-reload+jwt"],
            ["alg": "EdDSA", "kid": kid, "typ": 5], ["alg": "EdDSA"], ["kid": kid],
            ["alg": "EdDSA", "kid": "../../certs/ca"], ["alg": "EdDSA", "kid": 5], [],
        ] as [JSONValue] {
            let answer = try await use(try issuer.token(header: header, claims: claims))
            #expect(answer.status == 401, "\(header.text)")
        }
    }

    @Test("The gateway's own notifications do not pass for tokens")
    func notification() async throws {
        let target = try await Target.shared()
        try await target.register("jws")
        let poll = try await target.send(
            "GET", "clients/jws/reloads", token: target.clientToken("jws"))
        let jws = try #require(poll["notifications"]?.arrayValue?.first?.stringValue)
        #expect(try await use(jws).status == 401)
    }

    @Test("A client token that lives longer than 30 days is 401, also without iat")
    func longLife() async throws {
        let target = try await Target.shared()
        let end = JSONValue.integer(Issuer.now + 31 * 86_400)
        for iat in [.integer(Issuer.now), nil, .integer(Issuer.now - 86_400)] as [JSONValue] {
            let token = try target.issuer.token(
                scope: "client catalog:write", sub: "long", ["exp": end, "iat": iat])
            try await expectInvalid(token, "token-lives-too-long")
        }
        let backend = try target.issuer.token(scope: "catalog:write", ["exp": end])
        #expect(try await use(backend).status == 200, "a backend's may")
    }

    @Test("app * without the scope operator is 403, with it every app is open")
    func everyApp() async throws {
        let target = try await Target.shared()
        let token = try target.issuer.token(app: "*", scope: "catalog:write")
        expectRefusal(try await use(token), 403, "token-wildcard-app", says: "operator")
        let wide = try target.issuer.token(app: "*", scope: "catalog:write operator")
        #expect(try await use(wide).status == 200)
    }

    @Test("Anything but one bearer token in the Authorization header is 401")
    func strangeAuthorization() async throws {
        let target = try await Target.shared()
        let token = try await token([:])
        for field in ["Basic czNjcjN0", "Bearer", "Bearer \(token) x", token, "Digest \(token)"] {
            let answer = try await target.send(
                "GET", "catalog", token: nil, headers: [("Authorization", field)])
            #expect(answer.status == 401, "\(field.prefix(10))")
        }
        let two = try await target.send(
            "GET", "catalog", token: nil,
            headers: [("Authorization", "Bearer \(token)"), ("Authorization", "Bearer x")])
        #expect(two.status == 401)
    }

    @Test("A token in the query is not looked at")
    func tokenInQuery() async throws {
        let target = try await Target.shared()
        let token = try await token([:])
        let answer = try await target.send("GET", "catalog?access_token=\(token)", token: nil)
        #expect(answer.status == 401)
    }

    /// Attributes that are each allowed, but make the token longer than any that is read.
    private static var longAttributes: JSONObject {
        var attributes = JSONObject()
        for number in 0..<32 {
            attributes["a\(number)"] = .array(
                (0..<64).map { .string("value \($0) of \(number)") })
        }
        return attributes
    }

    @Test(
        "A client token ordered for more than 30 days, nobody or odd attributes is 422",
        arguments: [
            ("sub", [:]), ("sub", ["sub": "a/b"]), ("sub", ["sub": "a\u{0}"]), ("sub", ["sub": 5]),
            ("ttl", ["sub": "a", "ttl": 2_592_001]), ("ttl", ["sub": "a", "ttl": "31d"]),
            ("ttl", ["sub": "a", "ttl": 0]), ("ttl", ["sub": "a", "ttl": -1]),
            ("ttl", ["sub": "a", "ttl": "9223372036854775807d"]),
            ("ttl", ["sub": "a", "ttl": [:]]),
            ("attributes", ["sub": "a", "attributes": ["s3cr3t"]]),
            ("attributes.account", ["sub": "a", "attributes": ["account": "4\u{0}2"]]),
            ("attributes", ["sub": "a", "attributes": .object(longAttributes)]),
        ] as [(String, JSONValue)])
    func wrongOrder(_ place: String, _ order: JSONValue) async throws {
        let target = try await Target.shared()
        let answer = try await target.send("POST", "tokens", token: target.backend, order)
        expectRefusal(answer, 422, "invalid", place: place)
    }
}
