import GatewaySigning
import Testing

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

    @Test func aBelievedTokenIsRememberedOnce() throws {
        let cache = CachedTokenVerifier(TokenVerifier(policy: policy))
        let token = try token()
        let first = try cache.verify(token, now: now)
        #expect(cache.count == 1)
        #expect(try cache.verify(token, now: now + 50) == first)
        #expect(cache.count == 1)
    }

    @Test func refusalsAreNotRemembered() throws {
        let cache = CachedTokenVerifier(TokenVerifier(policy: policy))
        var token = try token()
        token[token.count - 5] ^= 1
        for _ in 0..<3 {
            #expect(throws: TokenRejection.self) { try cache.verify(token, now: now) }
        }
        #expect(throws: TokenRejection.tooLarge) {
            try cache.verify([UInt8](repeating: 0x41, count: JWS.tokenBytesMax + 1), now: now)
        }
        #expect(cache.count == 0)
    }

    @Test func aRememberedTokenStillExpiresAndStillHasToBegin() throws {
        let cache = CachedTokenVerifier(TokenVerifier(policy: policy))
        let token = try token()
        _ = try cache.verify(token, now: now)
        _ = try cache.verify(token, now: now + 159)
        #expect(throws: TokenRejection.expired) { try cache.verify(token, now: now + 160) }
        #expect(throws: TokenRejection.notYetValid) { try cache.verify(token, now: now - 61) }
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
                // A check begun under the open policy may end under the closed one: its answer is
                // good for who asked, but must not be remembered.
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
        // Nothing judged by the open policy may answer under the closed one.
        cache.replace(with: closed)
        for token in tokens {
            #expect(throws: TokenRejection.unknownIssuer) { try cache.verify(token, now: now) }
        }
    }
}
