import GatewaySigning
import GatewayTestSupport
import Testing
import WidgetModel

/// Tokens that must not be accepted, although each of them is nearly valid.
@Suite("Token attacks", .othersUnaffected)
struct TokenAttackTests {
    /// The rules themselves are tested where tokens are verified; these are their answers.
    @Test("A forged token is 401, and told its reason") func forgedTokens() async throws {
        let target = try await Target.shared()
        let issuer = target.issuer
        let kid = JSONValue.string(issuer.kid)
        let honest = issuer.claims(scope: "catalog:write")
        let stranger = Issuer(
            iss: issuer.iss, aud: issuer.aud, key: try SigningKey(generating: .edDSA))
        func moment(_ seconds: Int64) -> JSONValue { .integer(Issuer.now + seconds) }
        func token(_ others: JSONObject) throws -> String {
            try issuer.token(scope: "catalog:write", others)
        }
        func signed(_ header: JSONValue, by issuer: Issuer) throws -> String {
            try issuer.token(header: header, claims: honest)
        }
        let control = try await target.send("GET", "catalog", token: token([:]))
        #expect(control.status == 200)
        let padding = JSONValue.string(String(repeating: "s3cr3t", count: 1_500))
        let tokens: [(code: String, token: String)] = [
            ("expired", try token(["iat": moment(-180), "exp": moment(-120)])),
            ("not-yet-valid", try token(["nbf": moment(600)])),
            ("unknown-issuer", try token(["iss": "https://s3cr3t.example"])),
            ("unknown-key", try stranger.token(scope: "catalog:write")),
            ("bad-signature", try signed(["alg": "EdDSA", "kid": kid], by: stranger)),
            ("wrong-audience", try token(["aud": "https://s3cr3t.example"])),
            ("wrong-algorithm", try signed(["alg": "none", "kid": kid], by: issuer)),
            ("malformed", "a.b.c"),
            ("bad-claims", try token(["exp": .null])),
            (
                "critical-header",
                try signed(["alg": "EdDSA", "kid": kid, "crit": ["exp"]], by: issuer)
            ),
            (
                "wrong-type",
                try signed(
                    ["alg": "EdDSA", "kid": kid, "typ": "timeline-reload+jwt"], by: issuer)
            ),
            (
                "lives-too-long",
                // 31 days.
                try issuer.token(
                    scope: "client catalog:write", sub: "long", ["exp": moment(2_678_400)])
            ),
            ("too-large", try token(["x": padding])),
        ]
        for (code, token) in tokens {
            let answer = try await target.send("GET", "catalog", token: token)
            expectRefusal(answer, 401, "token-\(code)")
            let challenge = answer.header("www-authenticate") ?? ""
            #expect(challenge.contains(#"error="invalid_token""#), "\(code): \(challenge)")
        }
    }

    @Test("Anything but one bearer token in the Authorization header is 401")
    func strangeAuthorization() async throws {
        let target = try await Target.shared()
        let token = try target.issuer.token(scope: "catalog:write")
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
        let token = try target.issuer.token(scope: "catalog:write")
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
