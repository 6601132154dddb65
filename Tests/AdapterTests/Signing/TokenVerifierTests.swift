import GatewaySigning
import Testing
import WidgetModel

@Suite struct TokenVerifierTests {
    static let now: Int64 = 1_800_000_000
    static let audience = "https://gateway.example"
    let now = Self.now
    let key: SigningKey
    let verifier: TokenVerifier

    init() throws {
        key = try SigningKey()
        let operatorKey = try SigningKey()
        verifier = TokenVerifier(
            policy: TokenPolicy(
                issuers: [
                    TrustedIssuer(
                        iss: "backend", apps: .only(["game", "shop"]),
                        scopes: [.catalogWrite, .changesWrite, .client],
                        keys: JWKSet([key.publicKey])),
                    TrustedIssuer(
                        iss: "ops", apps: .any, scopes: Set(Scope.allCases),
                        keys: JWKSet([operatorKey.publicKey, key.publicKey])),
                ], audiences: [Self.audience]))
    }

    func claims(_ changes: JSONObject = [:], without names: String...) -> JSONObject {
        var claims: JSONObject = [
            "iss": "backend", "sub": "phone-1", "aud": .string(Self.audience), "app": "game",
            "scope": "client", "iat": .integer(Self.now), "exp": .integer(Self.now + 3_600),
        ]
        for member in changes.members { claims[member.name] = member.value }
        for name in names { claims[name] = nil }
        return claims
    }

    func sign(_ claims: JSONObject, by signer: SigningKey? = nil) throws -> [UInt8] {
        try JWSSigner(key: signer ?? key, type: "JWT")
            .sign(payload: JSONValue.object(claims).serialized)
    }

    func rejection(_ token: [UInt8], now: Int64 = Self.now) -> TokenRejection? {
        do throws(TokenRejection) {
            _ = try verifier.verify(token, now: now)
            return nil
        } catch {
            return error
        }
    }

    func rejection(of changes: JSONObject, now: Int64 = Self.now) throws -> TokenRejection? {
        rejection(try sign(claims(changes)), now: now)
    }

    /// KELVIN SIGN equals `K` for any code that compares characters.
    @Test func `names that look alike grant nothing`() throws {
        let kelvin = "\u{212A}"
        let issuer = TrustedIssuer(
            iss: "iss", apps: .only(["Kid"]), scopes: [.client], keys: JWKSet([key.publicKey]))
        let verifier = TokenVerifier(
            policy: TokenPolicy(issuers: [issuer], audiences: ["https://K.example"]))
        func rejection(_ app: String, _ audience: String) throws -> TokenRejection? {
            let token = try sign(
                claims(["iss": "iss", "app": .string(app), "aud": .string(audience)]))
            do throws(TokenRejection) {
                _ = try verifier.verify(token, now: now)
                return nil
            } catch {
                return error
            }
        }
        #expect(try rejection("Kid", "https://K.example") == nil)
        #expect(try rejection("\(kelvin)id", "https://K.example") == .foreignApp)
        #expect(try rejection("Kid", "https://\(kelvin).example") == .wrongAudience)
        let token = VerifiedToken(
            issuer: "iss", subject: "s", app: "\(kelvin)id", scopes: [.client], expires: .max,
            kid: "")
        #expect(!token.concerns(app: "Kid") && token.concerns(app: "\(kelvin)id"))
    }

    @Test func whatItGrantsIsReadBack() throws {
        let token = try verifier.verify(
            sign(claims(["scope": "client unheard:of changes:write", "extra": [1]])), now: now)
        #expect(token.issuer == "backend")
        #expect(token.subject == "phone-1")
        #expect(token.app == "game")
        #expect(token.scopes == [.client, .changesWrite])
        #expect(token.expires == now + 3_600)
        #expect(token.kid == key.kid)
        #expect(token.attributes == [:])
        #expect(token.grants(.client, for: "game"))
        #expect(!token.grants(.client, for: "shop"))
        #expect(!token.grants(.operate, for: "game"))
    }

    @Test(arguments: SigningAlgorithm.allCases)
    func whatTheIssuerMintsTheVerifierBelieves(_ algorithm: SigningAlgorithm) throws {
        let key = try SigningKey(generating: algorithm)
        let verifier = TokenVerifier(
            policy: TokenPolicy(
                issuers: [
                    TrustedIssuer(
                        iss: "local", apps: .any, scopes: Set(Scope.allCases),
                        keys: JWKSet([key.publicKey]))
                ], audiences: [Self.audience]))
        let issuer = TokenIssuer(key: key, iss: "local", aud: Self.audience)
        let token = try issuer.issue(
            sub: "c1", app: "game", scopes: [.client, .operate], ttl: 60,
            attributes: ["account": ["42"], "friends": ["a", "b"]], now: now)
        let verified = try verifier.verify(bytes(token), now: now)
        #expect(verified.scopes == [.client, .operate])
        #expect(verified.attributes == ["account": ["42"], "friends": ["a", "b"]])
        #expect(verified.expires == now + 60)
        let another = try issuer.issue(
            sub: "c1", app: "game", scopes: [.client], ttl: 60, now: now, jti: "fixed")
        #expect(token != another)
        #expect(throws: SigningError.self) {
            try issuer.issue(
                sub: String(repeating: "x", count: 9_000), app: "game", scopes: [], ttl: 60,
                now: now)
        }
    }

    @Test(arguments: ["iss", "sub", "aud", "app", "scope", "exp"])
    func eachRequiredClaimIsRequired(_ name: String) throws {
        var claims = claims()
        let expected = TokenRejection.badClaim(try #require(TokenClaim(rawValue: name)))
        claims[name] = nil
        #expect(rejection(try sign(claims)) == expected)
        claims[name] = ["nested": true]
        #expect(rejection(try sign(claims)) == expected)
        claims[name] = nil
        claims["iat"] = nil
        #expect(rejection(try sign(claims)) == expected)
        #expect(expected.message.contains(name))
    }

    @Test func claimsOfTheWrongTypeAreRefused() throws {
        for changes: JSONObject in [
            ["sub": ""], ["app": ""], ["app": ["game"]], ["scope": ["client", 7]],
            ["exp": "soon"], ["exp": -1], ["exp": .integer(.max)], ["exp": .number(1e300)],
            ["nbf": "now"], ["iat": .null], ["aud": [.string(Self.audience), 7]], ["jti": 7],
            ["sub": .string(String(repeating: "x", count: 257))],
        ] {
            let claim = try #require(TokenClaim(rawValue: changes.members[0].name))
            #expect(try rejection(of: changes) == .badClaim(claim))
        }
        #expect(try rejection(of: ["exp": .number(Double(Self.now) + 0.5)], now: now - 10) == nil)
    }

    @Test func `scopes may be a list, and be called scp`() throws {
        for (name, scopes): (String, JSONValue) in [
            ("scope", ["catalog:write", "changes:write"]),
            ("scope", ["catalog:write changes:write openid"]),
            ("scp", "catalog:write changes:write"), ("scp", ["catalog:write", "changes:write"]),
        ] {
            var claims = claims(without: "scope")
            claims[name] = scopes
            let token = try verifier.verify(try sign(claims), now: now)
            #expect(token.scopes == [.catalogWrite, .changesWrite])
        }
        // The registered claim takes precedence over the other one.
        let both = try verifier.verify(
            try sign(claims(["scope": "client", "scp": "changes:write"])), now: now)
        #expect(both.scopes == [.client])
    }

    @Test func `operators may do what readers may, and not the reverse`() throws {
        let reader = Set([Scope.operatorRead])
        #expect(Scope.grants(.operatorRead, from: [.operate]))
        #expect(Scope.grants(.operatorRead, from: reader))
        #expect(Scope.allCases.filter { Scope.grants($0, from: reader) } == [.operatorRead])
    }

    @Test func theAudienceMayBeAListThatHoldsTheGateway() throws {
        let others: JSONValue = ["https://other.example", .string(Self.audience)]
        #expect(try rejection(of: ["aud": others]) == nil)
        #expect(try rejection(of: ["aud": []]) == .wrongAudience)
        #expect(try rejection(of: ["aud": "https://gateway.example/"]) == .wrongAudience)
        #expect(try rejection(of: ["aud": ["https://other.example"]]) == .wrongAudience)
    }

    @Test func expiryAndBeginningAreJudgedWithLeewayToTheSecond() throws {
        let token = try sign(claims())
        #expect(rejection(token, now: now + 3_659) == nil)
        #expect(rejection(token, now: now + 3_660) == .expired)
        #expect(rejection(token, now: now - 60) == nil)
        #expect(rejection(token, now: now - 61) == .notYetValid(.iat))
        let later = try sign(claims(["nbf": .integer(now + 600)]))
        #expect(rejection(later, now: now + 540) == nil)
        #expect(rejection(later, now: now + 539) == .notYetValid(.nbf))
        #expect(rejection(token, now: .max) == .expired)
        #expect(rejection(token, now: .min) == .notYetValid(.iat))
    }

    @Test func aStrangerIsNotBelieved() throws {
        #expect(try rejection(of: ["iss": "nobody"]) == .unknownIssuer)
        let stranger = try SigningKey()
        #expect(rejection(try sign(claims(), by: stranger)) == .unknownKey)
        let header = #"{"alg":"EdDSA","kid":"\#(key.kid)"}"#
        let payload = JSONValue.object(claims()).text
        #expect(
            rejection(try forge(header: header, payload: payload, by: stranger)) == .badSignature)
        #expect(rejection(try forge(header: header, payload: payload, by: key)) == nil)
    }

    /// Claims of a token without a valid signature are not examined, whatever else is wrong with
    /// them.
    @Test func claimsAreNotJudgedBeforeTheSignature() throws {
        let header = #"{"alg":"EdDSA","kid":"\#(key.kid)"}"#
        let payload = JSONValue.object(claims(["exp": 1, "app": "*", "aud": "x"])).text
        let token = try forge(header: header, payload: payload, by: try SigningKey())
        #expect(rejection(token) == .badSignature)
    }

    @Test func anIssuerSpeaksOnlyForItsAppsAndScopes() throws {
        #expect(try rejection(of: ["app": "shop"]) == nil)
        #expect(try rejection(of: ["app": "bank"]) == .foreignApp)
        #expect(try rejection(of: ["scope": "clients:write"]) == .foreignScope)
        #expect(try rejection(of: ["scope": "client tokens:issue"]) == .foreignScope)
        #expect(try rejection(of: ["scope": "operator", "app": "*"]) == .foreignScope)
        #expect(try rejection(of: ["iss": "ops", "app": "bank", "scope": "clients:write"]) == nil)
        #expect(try rejection(of: ["scope": ""]) == nil)
    }

    @Test func everyAppNeedsOperator() throws {
        #expect(try rejection(of: ["iss": "ops", "app": "*", "scope": "operator"]) == nil)
        #expect(
            try rejection(of: ["iss": "ops", "app": "*", "scope": "changes:write"]) == .wildcardApp)
        #expect(try rejection(of: ["app": "*"]) == .wildcardApp)
        let limited = TokenVerifier(
            policy: TokenPolicy(
                issuers: [
                    TrustedIssuer(
                        iss: "backend", apps: .only(["game", "*"]), scopes: [.operate],
                        keys: JWKSet([key.publicKey]))
                ], audiences: [Self.audience]))
        let token = try sign(claims(["app": "*", "scope": "operator"]))
        #expect(throws: TokenRejection.foreignApp) { try limited.verify(token, now: now) }
        let every = try verifier.verify(
            sign(claims(["iss": "ops", "app": "*", "scope": "operator"])), now: now)
        #expect(every.concerns(app: "anything"))
    }

    @Test func aClientTokenLivesThirtyDaysAtMost() throws {
        let limit: Int64 = 30 * 24 * 3_600
        #expect(try rejection(of: ["exp": .integer(now + limit)]) == nil)
        #expect(try rejection(of: ["exp": .integer(now + limit + 1)]) == .livesTooLong)
        // The lifetime counts from an old `iat`, and from now without one.
        #expect(
            try rejection(of: ["iat": .integer(now - limit), "exp": .integer(now + 1)])
                == .livesTooLong)
        let without = try sign(claims(["exp": .integer(now + limit + 61)], without: "iat"))
        #expect(rejection(without) == .livesTooLong)
        #expect(rejection(without, now: now + 1) == nil)
        // A backend's own token may have a longer lifetime.
        #expect(
            try rejection(of: ["scope": "changes:write", "exp": .integer(now + 2 * limit)]) == nil)
    }

    @Test func attributesBecomeTexts() throws {
        let token = try verifier.verify(
            sign(
                claims([
                    "attributes": [
                        "account": 42, "tier": "gold", "beta": true, "ratio": .number(0.5),
                        "whole": .number(7), "teams": ["a", 1, false],
                    ]
                ])), now: now)
        #expect(
            token.attributes == [
                "account": ["42"], "tier": ["gold"], "beta": ["true"], "ratio": ["0.5"],
                "whole": ["7"], "teams": ["a", "1", "false"],
            ])
        for wrong: JSONValue in [
            "text", [], 1, ["account": ["nested": 1]], ["account": .null], ["account": [["deep"]]],
            ["account": .string(String(repeating: "x", count: 257))],
        ] {
            #expect(try rejection(of: ["attributes": wrong]) == .badClaim(.attributes))
        }
    }

    @Test func aTokenWithTwoClaimsOfOneNameIsRefused() throws {
        let honest = JSONValue.object(claims()).text
        let doubled = #"{"app":"bank","# + honest.dropFirst()
        let header = #"{"alg":"EdDSA","kid":"\#(key.kid)","typ":"JWT"}"#
        #expect(rejection(try forge(header: header, payload: doubled, by: key)) == .malformed)
        #expect(rejection(try forge(header: header, payload: honest, by: key)) == nil)
    }

    @Test func aNotificationIsNoToken() throws {
        let payload = JSONValue.object(claims()).serialized
        #expect(rejection(try JWSSigner.reloads(key).sign(payload: payload)) == .wrongType)
    }

    @Test func ofTwoEntriesWithOneNameTheOneThatHoldsTheKeyCounts() throws {
        let second = try SigningKey(generating: .es256)
        func entry(_ app: String, _ key: SigningKey) -> TrustedIssuer {
            TrustedIssuer(
                iss: "backend", apps: .only([app]), scopes: [.client],
                keys: JWKSet([key.publicKey]))
        }
        let both = TokenVerifier(
            policy: TokenPolicy(
                issuers: [entry("game", key), entry("shop", second)], audiences: [Self.audience]))
        #expect(try both.verify(sign(claims()), now: now).kid == key.kid)
        let shop = try sign(claims(["app": "shop"]), by: second)
        #expect(try both.verify(shop, now: now).kid == second.kid)
        let crossed = try sign(claims(["app": "game"]), by: second)
        #expect(throws: TokenRejection.foreignApp) { try both.verify(crossed, now: now) }
    }

    @Test func rejectionsHaveCodesOfTheirOwnAndSayNothingOfTheToken() {
        let codes = Set(TokenRejection.allCases.map(\.code))
        #expect(codes.count == TokenRejection.allCases.count)
        #expect(Set(TokenRejection.allCases.map(\.message)).count == codes.count)
        let forbidden = TokenRejection.allCases.filter { !$0.isInvalidToken }
        #expect(Set(forbidden) == [.foreignApp, .foreignScope, .wildcardApp])
    }
}
