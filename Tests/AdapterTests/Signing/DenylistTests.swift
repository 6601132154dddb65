import Testing

@testable import GatewaySigning

@Suite struct DenylistTests {
    private let now: Int64 = 1_800_000_000

    private func token(_ app: String, _ sub: String, jti: String? = nil) -> VerifiedToken {
        VerifiedToken(
            issuer: "i", subject: sub, app: app, scopes: [.client], expires: .max, kid: "k",
            jti: jti)
    }

    @Test func `an empty list denies nothing`() {
        #expect(!Denylist().denies(token("game", "c", jti: "1"), now: now))
    }

    @Test func `single tokens are denied by their jti`() {
        let list = Denylist([.init(.token(jti: "1"))])
        #expect(list.denies(token("game", "c", jti: "1"), now: .max - 1))
        #expect(list.denies(token("other", "d", jti: "1"), now: now))
        #expect(!list.denies(token("game", "c", jti: "2"), now: now))
        #expect(!list.denies(token("game", "1"), now: now))
    }

    @Test func `all tokens of a subject are denied by app and sub`() {
        let list = Denylist([.init(.subject(app: "game", sub: "c"))])
        #expect(list.denies(token("game", "c"), now: now))
        #expect(list.denies(token("game", "c", jti: "9"), now: now))
        #expect(!list.denies(token("game", "d"), now: now))
        #expect(!list.denies(token("other", "c"), now: now))
        #expect(!list.denies(token("*", "c"), now: now))
        // App and subject are compared separately, not joined.
        #expect(
            !Denylist([.init(.subject(app: "ga", sub: "mec"))]).denies(token("game", "c"), now: now)
        )
    }

    @Test func `an entry ends at its time, and of several the last counts`() {
        let list = Denylist([
            .init(.token(jti: "1"), until: now + 10), .init(.token(jti: "1"), until: now + 20),
            .init(.token(jti: "1"), until: now + 5),
        ])
        #expect(list.count == 1)
        #expect(list.denies(token("game", "c", jti: "1"), now: now + 19))
        #expect(!list.denies(token("game", "c", jti: "1"), now: now + 20))
    }

    @Test func `names are compared byte by byte`() {
        // By Unicode, U+212A equals K, and the two spellings of the letter equal each other.
        let list = Denylist([
            .init(.subject(app: "game", sub: "Kelvin")), .init(.token(jti: "caf\u{E9}")),
        ])
        #expect(!list.denies(token("game", "\u{212A}elvin"), now: now))
        #expect(!list.denies(token("game", "x", jti: "cafe\u{301}"), now: now))
        #expect(list.denies(token("game", "x", jti: "caf\u{E9}"), now: now))
        #expect(list.count == 2)
    }
}

@Suite struct TokenPolicyTests {
    private let key: SigningKey
    private let other: SigningKey

    init() throws {
        (key, other) = (try SigningKey(), try SigningKey())
    }

    private func policy(
        _ keys: [SigningKey], iss: String = "i", apps: TrustedIssuer.Apps = .only(["game"]),
        scopes: Set<Scope> = [.client], denied: Denylist = Denylist()
    ) -> TokenPolicy {
        TokenPolicy(
            issuers: [
                TrustedIssuer(
                    iss: iss, apps: apps, scopes: scopes, keys: JWKSet(keys.map(\.publicKey)))
            ], audiences: ["g"], denied: denied)
    }

    /// A token as an earlier policy accepted it.
    private var token: VerifiedToken {
        VerifiedToken(
            issuer: "i", subject: "c", app: "game", scopes: [.client], expires: 0,
            kid: key.kid, key: key.publicKey, jti: "1")
    }

    @Test func `what was believed stays believed while key and rights are there`() {
        #expect(policy([key]).trusts(token, now: 0))
        #expect(
            policy([other, key], apps: .any, scopes: Set(Scope.allCases)).trusts(token, now: 0))
    }

    @Test func `what was believed ends with its key, its issuer and its rights`() {
        #expect(!policy([other]).trusts(token, now: 0))
        #expect(!policy([]).trusts(token, now: 0))
        #expect(!policy([key], iss: "j").trusts(token, now: 0))
        #expect(!policy([key], apps: .only(["other"])).trusts(token, now: 0))
        #expect(!policy([key], scopes: [.changesWrite]).trusts(token, now: 0))
        #expect(
            !policy([key], denied: Denylist([.init(.token(jti: "1"))])).trusts(token, now: 0))
        #expect(!TokenPolicy(issuers: [], audiences: []).trusts(token, now: 0))
    }

    @Test func `what no key signed is not believed`() {
        let grant = VerifiedToken(
            issuer: "i", subject: "c", app: "game", scopes: [.client], expires: 0, kid: key.kid)
        #expect(!policy([key]).trusts(grant, now: 0))
    }

    @Test func `issuers are told apart byte by byte`() throws {
        let policy = policy([key], iss: "caf\u{E9}")
        #expect(policy.issuer("caf\u{E9}", kid: key.kid) != nil)
        #expect(policy.issuer("cafe\u{301}", kid: key.kid) == nil)
    }
}
