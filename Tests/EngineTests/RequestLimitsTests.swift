import GatewayCore
import GatewaySigning
import GatewayTLS
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Synchronization
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayOperations
@testable import GatewayServer

@Suite struct RequestLimitsTests {
    private static let address = SourceAddress(ip: [192, 0, 2, 1])

    private static func token(_ app: String, _ subject: String, _ scopes: Set<Scope>)
        -> VerifiedToken
    {
        VerifiedToken(
            issuer: "test", subject: subject, app: app, scopes: scopes, expires: .max, kid: "")
    }

    private static func limits(
        _ change: (inout RateLimits) -> Void = { _ in }, bytesInWork: Int = 100
    ) -> RequestLimits {
        var rates = RateLimits()
        change(&rates)
        return RequestLimits(
            rates: rates, bytesInWork: bytesInWork, metrics: GatewayMetrics(), now: { 0 })
    }

    @Test func `a client above its rate gets 429 with RateLimit fields, others do not`() throws {
        let limits = Self.limits {
            $0.client = TokenRate(count: 2, period: 10_000, burst: 3)
        }
        let greedy = Self.token("app", "greedy", [.client])
        for _ in 0..<3 { try limits.admit(greedy) }
        let problem = #expect(throws: ProblemDetails.self) { try limits.admit(greedy) }
        let answer = try #require(problem?.answer)
        #expect(answer.head.status.code == 429)
        #expect(answer.head.headers["RateLimit-Policy"] == ["\"client\";q=2;w=10"])
        #expect(answer.head.headers["RateLimit"] == ["\"client\";r=0;t=5"])
        #expect(answer.head.headers["Retry-After"] == ["5"])
        #expect(problem?.code == "rate-limited")
        try limits.admit(Self.token("app", "other", [.client]))
        try limits.admit(Self.token("app", "greedy", [.changesWrite]))
        try limits.admit(Self.token("other", "greedy", [.client]))
    }

    @Test func `an app and an address have rates of their own`() throws {
        let rate = TokenRate(count: 1, period: 1_000, burst: 2)
        let limits = Self.limits { ($0.app, $0.address) = (rate, rate) }
        let token = Self.token("app", "backend", [.changesWrite])
        for _ in 0..<2 {
            try limits.admit(token)
            try limits.admit(Self.address)
        }
        #expect(throws: ProblemDetails.self) { try limits.admit(token) }
        #expect(throws: ProblemDetails.self) { try limits.admit(Self.address) }
        try limits.admit(Self.token("other", "backend", [.changesWrite]))
        // A peer without an Internet address is not counted by address.
        try limits.admit(nil as SourceAddress?)
    }

    @Test(arguments: [TokenKind.ofTrustedKey, .ofOtherKey, .ticket])
    func `an address with too many invalid tokens of a kind has to wait`(kind: TokenKind) throws {
        let limits = Self.limits {
            $0.refusedTokens = TokenRate(count: 1, period: 2_000, burst: 2)
        }
        func excess(_ address: SourceAddress?, _ kind: TokenKind) -> ProblemDetails? {
            limits.excessOfRefusedTokens(address, of: kind)
        }
        for _ in 0..<2 {
            #expect(excess(Self.address, kind) == nil)
            limits.noteRefusedToken(Self.address, of: kind)
        }
        let problem = try #require(excess(Self.address, kind))
        #expect(problem.status == 429 && problem.retryAfter == 2)
        // True for a sender that sent none of them.
        #expect(problem.detail?.contains("which others may share") == true)
        for other in [TokenKind.ofTrustedKey, .ofOtherKey, .ticket] where other != kind {
            #expect(excess(Self.address, other) == nil)
        }
        #expect(excess(SourceAddress(ip: [192, 0, 2, 2]), kind) == nil)
        #expect(excess(nil, kind) == nil)
    }

    @Test func `addresses are told apart as sites are`() throws {
        func source(_ text: String) throws -> SourceAddress {
            SourceAddress(ip: try #require(IPAddress(text)).bytes)
        }
        #expect(try source("2001:db8:1:2::1") == source("2001:db8:1:2:ffff::9"))
        #expect(try source("2001:db8:1:2::1") != source("2001:db8:1:3::1"))
        #expect(try source("::ffff:192.0.2.1") == source("192.0.2.1"))
        #expect(try source("192.0.2.1") != source("192.0.2.2"))
        #expect(try source("::c000:201") != source("192.0.2.1"))
    }

    private final class Reader: Sendable {
        let isDone = Mutex(false)
    }

    /// Reads a body like a route, and keeps it until the account is closed.
    private static func read(
        _ bytes: Int, of app: String, _ limits: RequestLimits, on channel: any Channel
    ) async throws -> RequestAccount {
        let account = RequestAccount(limits, source: nil, on: channel.eventLoop)
        account.identify(token(app, "backend", [.changesWrite]))
        let body = RequestBody.whole(ByteBuffer(repeating: 0, count: bytes))
        let request = GatewayRequest(
            head: HTTPRequestHead(version: .http1_1, method: .POST, uri: "/"), body: body,
            account: account)
        #expect(try await request.bytes(upTo: 1_000).count == bytes)
        return account
    }

    @Test func `a body waits for room, and one app cannot take all of it`() async throws {
        let limits = Self.limits()
        let channel = NIOAsyncTestingChannel()
        let first = try await Self.read(70, of: "greedy", limits, on: channel)
        let reader = Reader()
        let second = Task {
            let account = try await Self.read(30, of: "greedy", limits, on: channel)
            reader.isDone.withLock { $0 = true }
            return account
        }
        let other = try await Self.read(20, of: "other", limits, on: channel)
        #expect(limits.bytesInWork == 90)
        #expect(!reader.isDone.withLock { $0 })
        first.close()
        try await second.value.close()
        other.close()
        #expect(limits.bytesInWork == 0)
    }

    @Test func `bodies that wait for more do not wait for each other`() async throws {
        let limits = Self.limits()
        let channel = NIOAsyncTestingChannel()
        let first = try await Self.read(40, of: "app", limits, on: channel)
        let second = try await Self.read(40, of: "app", limits, on: channel)
        try await first.reserve(50)
        let waiting = Task { try await second.reserve(50) }
        first.close()
        try await waiting.value
        #expect(limits.bytesInWork == 90)
        second.close()
        #expect(limits.bytesInWork == 0)
    }

    @Test func `a body that waits too long gets 503 and leaves nothing behind`() async throws {
        let limits = Self.limits()
        let channel = NIOAsyncTestingChannel()
        let first = try await Self.read(90, of: "greedy", limits, on: channel)
        let second = Task {
            try await Self.read(30, of: "greedy", limits, on: channel)
        }
        let clock = Task {
            while !Task.isCancelled {
                await channel.testingEventLoop.advanceTime(by: .seconds(11))
                await Task.yield()
            }
        }
        defer { clock.cancel() }
        let problem = await #expect(throws: ProblemDetails.self) { try await second.value }
        #expect(problem?.status == 503 && problem?.retryAfter != nil)
        first.close()
        #expect(limits.bytesInWork == 0)
    }

    @Test(arguments: [
        ("100/1s", 100, 1_000, 100), ("5/2m burst 9", 5, 120_000, 9),
    ]) func `a rate is read`(text: String, count: Int64, period: Int64, burst: Int64) {
        #expect(RateLimits.read(text) == TokenRate(count: count, period: period, burst: burst))
    }

    @Test(arguments: [
        "", "5", "5/", "/1s", "0/1s", "5/0s", "5/1", "5/1s 9", "5/1s burst 0", "5/2d",
    ])
    func `what is no rate is not read`(text: String) {
        #expect(RateLimits.read(text) == nil)
    }
}

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
