import GatewayCore
import GatewayOperations
import GatewaySigning
import GatewayTLS
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayServer

/// Many senders behind one address, some of whose tokens are invalid.
@Suite struct RefusedTokenTests {
    private static let burst: Int64 = 20
    private static let address = SourceAddress(ip: [192, 0, 2, 1])

    private let key: SigningKey
    private let removed: SigningKey
    private let authorizer: Authorizer
    private let limits: RequestLimits

    init() throws {
        (key, removed) = (try SigningKey(), try SigningKey())
        let issuer = TrustedIssuer(
            iss: "i", apps: .any, scopes: Set(Scope.allCases), keys: JWKSet([key.publicKey]))
        let policy = TokenPolicy(issuers: [issuer], audiences: ["g"])
        authorizer = Authorizer(
            access: AccessState(
                verifier: CachedTokenVerifier(TokenVerifier(policy: policy)),
                grants: CertificateGrants([]), revision: AccessRevision(), now: { 1_000 }))
        var rates = RateLimits()
        rates.refusedTokens = TokenRate(count: 1, period: 3_600_000, burst: Self.burst)
        limits = RequestLimits(
            rates: rates, bytesInWork: 1, metrics: GatewayMetrics(), now: { 0 })
    }

    private func token(_ client: String, by key: SigningKey, ttl: Int64 = 100) throws -> String {
        try TokenIssuer(key: key, iss: "i", aud: "g")
            .issue(sub: client, app: "game", scopes: [.client], ttl: ttl, now: 1_000)
    }

    private func status(
        _ token: String, from address: SourceAddress = RefusedTokenTests.address
    ) -> Int {
        do throws(ProblemDetails) {
            _ = try authorizer.token(
                "Bearer \(token)", from: address, limits, certificateURIs: { [] })
            return 200
        } catch {
            return error.status
        }
    }

    @Test func `tokens of a removed key, sent without pause, keep no valid one out`() throws {
        let stale = try (0..<4).map { try token("stale-\($0)", by: removed) }
        let statuses = (0..<1_000).map { status(stale[$0 % 4]) }
        #expect(statuses.filter { $0 == 401 }.count == Int(Self.burst))
        #expect(statuses.last == 429)
        for number in 0..<50 { #expect(try status(token("new-\(number)", by: key)) == 200) }
    }

    @Test func `a forged token that is repeated keeps no valid one out`() throws {
        let forged = try token("forged", by: key).dropLast(8) + "AAAAAAAA"
        for _ in 0..<1_000 { #expect(status(String(forged)) == 401) }
        #expect(try status(token("new", by: key)) == 200)
    }

    /// The attack that the rate is for: each of these tokens needs the check of a signature.
    @Test func `forged tokens cost a number of checks, and keep out no token that is known`() throws
    {
        let known = try token("known", by: key)
        #expect(status(known) == 200)
        var checked = 0
        for number in 0..<200 {
            let forged = try token("forged-\(number)", by: key).dropLast(8) + "AAAAAAAA"
            if status(String(forged)) == 401 { checked += 1 }
        }
        #expect(checked == Int(Self.burst))
        #expect(status(known) == 200)
        #expect(try status(token("new", by: key)) == 429)
        let other = SourceAddress(ip: [192, 0, 2, 2])
        #expect(try status(token("new", by: key), from: other) == 200)
    }
}
