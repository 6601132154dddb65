import GatewaySigning
import Synchronization
import Testing
import WidgetModel

@Suite struct CachedTokenVerifierTests {
    let now: Int64 = 1_800_000_000
    let issuer: TokenIssuer
    let policy: TokenPolicy

    init() throws {
        let key = try SigningKey()
        issuer = TokenIssuer(key: key, iss: "local", aud: "gateway")
        policy = TokenPolicy(
            issuers: [
                TrustedIssuer(
                    iss: "local", apps: .any, scopes: Set(Scope.allCases),
                    keys: JWKSet([key.publicKey]))
            ], audiences: ["gateway"])
    }

    func token(_ sub: String = "c", ttl: Int64 = 100) throws -> [UInt8] {
        bytes(try issuer.issue(sub: sub, app: "game", scopes: [.client], ttl: ttl, now: now))
    }

    /// Replaces a letter of the signature by another of base64url.
    private static func damageSignature(of token: inout [UInt8]) {
        let place = token.count - 5
        token[place] = token[place] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
    }

    @Test func aBelievedTokenIsRememberedOnce() throws {
        let cache = CachedTokenVerifier(TokenVerifier(policy: policy))
        let token = try token()
        let first = try cache.verify(token, now: now)
        #expect(cache.count == 1)
        #expect(try cache.verify(token, now: now + 50) === first)
        #expect(cache.count == 1)
    }

    @Test func aBadSignatureIsRememberedAndTakesNoRoomOfBelievedTokens() throws {
        let cache = CachedTokenVerifier(TokenVerifier(policy: policy))
        var token = try token()
        Self.damageSignature(of: &token)
        for _ in 0..<3 {
            #expect(throws: TokenRejection.badSignature) { try cache.verify(token, now: now) }
            #expect(cache.refusalCount == 1)
        }
        #expect(throws: TokenRejection.tooLarge) {
            try cache.verify([UInt8](repeating: 0x41, count: JWS.tokenBytesMax + 1), now: now)
        }
        #expect(cache.count == 0 && cache.refusalCount == 1)
    }

    /// A flood of different rejected tokens evicts only rejections.
    @Test func refusalsAreBoundedAndPushOutNoBelievedToken() throws {
        let cache = CachedTokenVerifier(
            TokenVerifier(policy: policy), entriesMax: 20, refusalsMax: 8)
        let good = try token("good")
        _ = try cache.verify(good, now: now)
        for number in 0..<100 {
            var bad = try token("c\(number)")
            Self.damageSignature(of: &bad)
            #expect(throws: TokenRejection.badSignature) { try cache.verify(bad, now: now) }
            #expect(cache.refusalCount <= 8)
        }
        #expect(cache.count == 1 && cache.refusalCount >= 4)
        _ = try cache.verify(good, now: now)
        #expect(cache.count == 1)
    }

    @Test func `a token is checked by permission, but for one whose verdict is cached`() throws {
        let cache = CachedTokenVerifier(TokenVerifier(policy: policy))
        var asked: [Bool] = []
        func verify(_ token: [UInt8], now: Int64, _ isPermitted: Bool) throws {
            _ = try cache.verify(token, now: now) { namesTrustedKey in
                asked.append(namesTrustedKey)
                return isPermitted
            }
        }
        let good = try token()
        var bad = good
        Self.damageSignature(of: &bad)
        #expect(throws: TokenRejection.denied) { try verify(good, now: now, false) }
        try verify(good, now: now, true)
        #expect(throws: TokenRejection.badSignature) { try verify(bad, now: now, true) }
        #expect(asked == [true, true, true])
        try verify(good, now: now, false)
        #expect(throws: TokenRejection.badSignature) { try verify(bad, now: now, false) }
        #expect(throws: TokenRejection.expired) { try verify(good, now: now + 160, false) }
        #expect(asked.count == 3)
        let other = TokenIssuer(key: try SigningKey(), iss: "local", aud: "gateway")
        let foreign = bytes(
            try other.issue(sub: "c", app: "game", scopes: [.client], ttl: 100, now: now))
        for unknown in [foreign, bytes("a.b.c"), bytes("x"), []] {
            #expect(throws: TokenRejection.denied) { try verify(unknown, now: now, false) }
        }
        #expect(asked.dropFirst(3) == [false, false, false, false])
    }

    @Test func `a token that names an unknown key is reported with its issuer`() throws {
        let reported = Mutex<[String]>([])
        let cache = CachedTokenVerifier(TokenVerifier(policy: policy)) { issuer in
            reported.withLock { $0.append(issuer) }
        }
        let good = try token()
        _ = try cache.verify(good, now: now)
        #expect(reported.withLock { $0 } == [])
        let parts = good.split(separator: UInt8(ascii: "."))
        let header = Base64.url.string(bytes(#"{"alg":"EdDSA","kid":"later","typ":"JWT"}"#))
        let other = bytes(header) + [UInt8(ascii: ".")] + parts[1] + [UInt8(ascii: ".")] + parts[2]
        #expect(throws: TokenRejection.unknownKey) { try cache.verify(other, now: now) }
        #expect(reported.withLock { $0 } == [policy.issuers[0].iss])
    }

    @Test func whatTimeMendsIsNotRemembered() throws {
        let cache = CachedTokenVerifier(TokenVerifier(policy: policy))
        let token = try token(ttl: 100)
        #expect(throws: TokenRejection.notYetValid(.iat)) { try cache.verify(token, now: now - 61) }
        #expect(throws: TokenRejection.expired) { try cache.verify(token, now: now + 160) }
        #expect(cache.refusalCount == 0)
        // The clock was wrong, and is right again.
        _ = try cache.verify(token, now: now)
        var short = policy
        short.clientLifetimeMax = 50
        cache.replace(with: TokenVerifier(policy: short))
        #expect(throws: TokenRejection.livesTooLong) { try cache.verify(token, now: now) }
        #expect(cache.refusalCount == 0)
    }

    @Test func anotherPolicyForgetsRefusals() throws {
        let (own, other) = (try SigningKey(), try SigningKey())
        let token = bytes(
            try TokenIssuer(key: own, iss: "local", aud: "gateway").issue(
                sub: "c", app: "game", scopes: [.client], ttl: 100, now: now))
        // Both keys have the same id: one replaces the other.
        func policy(_ key: SigningKey) throws -> TokenPolicy {
            var jwk = key.publicKey.jwk
            jwk["kid"] = .string(own.kid)
            let issuer = TrustedIssuer(
                iss: "local", apps: .any, scopes: [.client],
                keys: JWKSet([try VerificationKey(jwk: jwk)]))
            return TokenPolicy(issuers: [issuer], audiences: ["gateway"])
        }
        let cache = CachedTokenVerifier(TokenVerifier(policy: try policy(other)))
        #expect(throws: TokenRejection.badSignature) { try cache.verify(token, now: now) }
        #expect(cache.refusalCount == 1)
        cache.replace(with: TokenVerifier(policy: try policy(own)))
        #expect(cache.refusalCount == 0)
        let verified = try cache.verify(token, now: now)
        #expect(try policy(own).trusts(verified, now: now))
        // The same id, another key.
        #expect(try !policy(other).trusts(verified, now: now))
    }

    @Test func aDeniedTokenIsRefusedUntilItsEntryEnds() throws {
        var policy = policy
        policy.denied = Denylist([.init(.subject(app: "game", sub: "c"), until: now + 50)])
        let cache = CachedTokenVerifier(TokenVerifier(policy: policy))
        let token = try token()
        for time in [now, now + 49] {
            #expect(throws: TokenRejection.denied) { try cache.verify(token, now: time) }
        }
        // Its signature was verified once, successfully.
        #expect(cache.count == 1 && cache.refusalCount == 0)
        _ = try cache.verify(token, now: now + 50)
        #expect(throws: TokenRejection.denied) {
            try TokenVerifier(policy: policy).verify(token, now: now)
        }
    }

    @Test func aRememberedTokenStillExpiresAndStillHasToBegin() throws {
        let cache = CachedTokenVerifier(TokenVerifier(policy: policy))
        let token = try token()
        _ = try cache.verify(token, now: now)
        _ = try cache.verify(token, now: now + 159)
        #expect(throws: TokenRejection.expired) { try cache.verify(token, now: now + 160) }
        #expect(throws: TokenRejection.notYetValid(.iat)) { try cache.verify(token, now: now - 61) }
    }

    @Test func anotherPolicyForgetsEverything() throws {
        let cache = CachedTokenVerifier(TokenVerifier(policy: policy))
        let token = try token()
        _ = try cache.verify(token, now: now)
        var strict = policy
        strict.issuers = []
        cache.replace(with: TokenVerifier(policy: strict))
        #expect(cache.count == 0)
        #expect(throws: TokenRejection.unknownIssuer) { try cache.verify(token, now: now) }
        cache.replace(with: TokenVerifier(policy: policy))
        _ = try cache.verify(token, now: now)
    }

    @Test func theCacheIsBoundedAndKeepsWhatIsUsed() throws {
        let cache = CachedTokenVerifier(TokenVerifier(policy: policy), entriesMax: 20)
        let used = try token("used")
        for round in 0..<200 {
            _ = try cache.verify(token("c\(round)"), now: now)
            _ = try cache.verify(used, now: now)
            #expect(cache.count <= 20)
        }
        #expect(cache.count >= 10)
    }

    @Test func manyTasksAskAtATimeWhileThePolicyChanges() async throws {
        let cache = CachedTokenVerifier(TokenVerifier(policy: policy), entriesMax: 16)
        let tokens = try (0..<40).map { try token("c\($0)") }
        var strict = policy
        strict.issuers = []
        let (open, closed) = (TokenVerifier(policy: policy), TokenVerifier(policy: strict))
        let now = now
        let wrong = await withTaskGroup(of: Int.self) { group in
            for task in 0..<6 {
                group.addTask {
                    var wrong = 0
                    for round in 0..<300 {
                        let number = (task * 7 + round) % tokens.count
                        do throws(TokenRejection) {
                            let token = try cache.verify(tokens[number], now: now)
                            if token.subject != "c\(number)" { wrong += 1 }
                        } catch {
                            if error != .unknownIssuer { wrong += 1 }
                        }
                        await Task.yield()
                    }
                    return wrong
                }
            }
            group.addTask {
                // A check begun under the open policy may end under the closed one: its result is
                // valid for that caller, but must not be cached.
                var wrong = 0
                for _ in 0..<100 {
                    cache.replace(with: closed)
                    for token in tokens where (try? cache.verify(token, now: now)) != nil {
                        wrong += 1
                    }
                    cache.replace(with: open)
                    await Task.yield()
                }
                return wrong
            }
            return await group.reduce(0, +)
        }
        #expect(wrong == 0)
        #expect(cache.count <= 16)
        // No result of the open policy may be returned under the closed one.
        cache.replace(with: closed)
        for token in tokens {
            #expect(throws: TokenRejection.unknownIssuer) { try cache.verify(token, now: now) }
        }
    }
}
