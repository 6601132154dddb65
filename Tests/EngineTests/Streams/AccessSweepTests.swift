import GatewaySigning
import GatewayTestSupport
import NIOCore
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayOperations
@testable import GatewayServer

/// Streams and polls whose grant is revoked, at each step of opening.
@Suite struct AccessSweepTests {
    private static let both = [("phone", "panda"), ("tablet", "panda")]

    /// Revokes the grants of all clients but these, like a reload without its sweep.
    private func keep(_ clients: [String], _ fixture: StreamFixture) {
        let authorizer = fixture.admission.authorizer
        authorizer.access.grants.replace(
            with: clients.map { .init(uri: $0, app: StreamFixture.app, scopes: [.client]) })
        authorizer.access.revision.advance()
    }

    private func sweep(_ fixture: StreamFixture) {
        let policy = fixture.admission.authorizer.access.policy
        for shard in fixture.loops.all { shard.endStreams(notAdmittedBy: policy) }
    }

    /// Waits until this number of streams is open.
    private func settle(_ fixture: StreamFixture, _ count: Int) async throws {
        try await eventually("\(count) streams are open") { fixture.loops.openStreams == count }
    }

    @Test func `open streams end with their grant, and others go on`() async throws {
        try await StreamFixture.running(Self.both) { fixture, cursor in
            var lost: [StreamFixture.Reader] = []
            for loop in [0, 1] {
                lost.append(try await fixture.open(fixture.admit("phone", since: cursor), on: loop))
            }
            let kept = try await fixture.open(fixture.admit("tablet", since: cursor))
            keep(["tablet"], fixture)
            sweep(fixture)
            try await settle(fixture, 1)
            for reader in lost { #expect(try await reader.said().isEnded) }
            #expect(!fixture.hasStream("phone"))
            try await fixture.change("Character", "panda")
            #expect(try await kept.said().stale == ["detail panda"])
            for reader in lost { #expect(try await reader.said().stale == []) }
        }
    }

    /// The sweep is over before the stream is opened.
    @Test func `a stream admitted by a grant that is gone is not opened`() async throws {
        try await StreamFixture.running(Self.both) { fixture, cursor in
            let admitted = try fixture.admit("phone", since: cursor)
            keep(["tablet"], fixture)
            sweep(fixture)
            do {
                _ = try await fixture.open(admitted)
                Issue.record("it was opened")
            } catch ShardLoop.Failure.refused(let error) {
                #expect(Problem.engine(error).status == 401)
            }
            #expect(!fixture.hasStream("phone"))
            await #expect { try await fixture.poll(admitted) } throws: {
                ($0 as? ProblemDetails)?.status == 401
            }
            _ = try await fixture.open(fixture.admit("tablet", since: cursor))
        }
    }

    @Test func `a poll that waits is answered 401 when its grant goes`() async throws {
        try await StreamFixture.running(Self.both) { fixture, cursor in
            let admitted = try fixture.admit("phone", since: cursor, stream: false)
            async let answer = fixture.poll(admitted, wait: 60)
            try await settle(fixture, 1)
            keep([], fixture)
            sweep(fixture)
            do {
                let stale = try await answer.stale
                Issue.record("answered \(stale)")
            } catch let problem as ProblemDetails {
                #expect(problem.status == 401)
            }
            try await settle(fixture, 0)
        }
    }

    /// A sweep that begins during another one applies the newer policy to all streams.
    @Test func `sweeps that overlap end what the last one does not admit`() async throws {
        let clients = (0..<60).map { "client-\($0)" }
        try await StreamFixture.running(clients.map { ($0, "panda") }) { fixture, cursor in
            for (number, client) in clients.enumerated() {
                _ = try await fixture.open(fixture.admit(client, since: cursor), on: number % 2)
            }
            for count in [40, 20, 5] {
                keep(Array(clients.prefix(count)), fixture)
                sweep(fixture)
            }
            try await settle(fixture, 5)
        }
    }
}

/// Streams admitted under one policy and opened when another one is in force.
@Suite struct StreamGrantTests {
    private let key: SigningKey
    private let authorizer: Authorizer

    init() throws {
        key = try SigningKey()
        authorizer = Authorizer(
            access: AccessState(
                verifier: CachedTokenVerifier(TokenVerifier(policy: Self.policy([key]))),
                grants: CertificateGrants([
                    .init(uri: "device", app: "game", scopes: [.client, .changesWrite])
                ]), revision: AccessRevision(), now: { 1_000 }))
    }

    private static func policy(
        _ keys: [SigningKey], denied: Denylist = Denylist()
    ) -> TokenPolicy {
        TokenPolicy(
            issuers: [
                TrustedIssuer(
                    iss: "i", apps: .any, scopes: Set(Scope.allCases),
                    keys: JWKSet(keys.map(\.publicKey)))
            ], audiences: ["g"], denied: denied)
    }

    private func replace(_ policy: TokenPolicy) {
        authorizer.access.verifier.replace(with: TokenVerifier(policy: policy))
        authorizer.access.revision.advance()
    }

    private func admitted() throws -> StreamGrant {
        let revision = authorizer.access.revision.current
        let text = try TokenIssuer(key: key, iss: "i", aud: "g").issue(
            sub: "c", app: "game", scopes: [.client], ttl: 100, now: 1_000, jti: "1")
        let token = try authorizer.token("Bearer \(text)", from: nil, certificateURIs: { [] })
        return StreamGrant(token, at: revision, by: authorizer.access)
    }

    @Test func `a grant is in force as long as the policy is`() throws {
        #expect(try admitted().isInForce)
    }

    @Test func `a grant outlives a policy that still trusts its key`() throws {
        let grant = try admitted()
        replace(Self.policy([try SigningKey(), key]))
        #expect(grant.isInForce)
    }

    @Test func `a grant ends with its key`() throws {
        let grant = try admitted()
        replace(Self.policy([try SigningKey()]))
        #expect(!grant.isInForce)
        // The grant is valid again with the old policy: nothing was opened meanwhile.
        replace(Self.policy([key]))
        #expect(grant.isInForce)
    }

    @Test func `a grant ends when its token is denied`() throws {
        let grant = try admitted()
        replace(Self.policy([key], denied: Denylist([.init(.token(jti: "1"))])))
        #expect(!grant.isInForce)
        replace(Self.policy([key], denied: Denylist([.init(.subject(app: "game", sub: "c"))])))
        #expect(!grant.isInForce)
        replace(Self.policy([key], denied: Denylist([.init(.token(jti: "1"), until: 999)])))
        #expect(grant.isInForce)
    }

    /// The policy is replaced while a token is verified; the revision was read before.
    @Test func `a grant that was judged by the last policy is judged again`() throws {
        let revision = authorizer.access.revision.current
        let token = try admitted().token
        replace(Self.policy([]))
        #expect(!StreamGrant(token, at: revision, by: authorizer.access).isInForce)
    }

    @Test func `a certificate's grant ends with its entry, its app and its scopes`() throws {
        let revision = authorizer.access.revision.current
        let token = try authorizer.token(nil, from: nil, certificateURIs: { ["device"] })
        let grant = StreamGrant(token, at: revision, by: authorizer.access)
        #expect(grant.isInForce)
        let kept: [[CertificateGrant]] = [
            [.init(uri: "device", app: "game", scopes: Set(Scope.allCases))]
        ]
        let lost: [[CertificateGrant]] = [
            [], [.init(uri: "other", app: "game", scopes: [.client, .changesWrite])],
            [.init(uri: "device", app: "other", scopes: [.client, .changesWrite])],
            [.init(uri: "device", app: "game", scopes: [.client])],
        ]
        for (grants, isInForce) in kept.map({ ($0, true) }) + lost.map({ ($0, false) }) {
            authorizer.access.grants.replace(with: grants)
            authorizer.access.revision.advance()
            #expect(grant.isInForce == isInForce)
        }
    }
}
