import GatewaySigning
import Testing

@testable import GatewayEngine
@testable import GatewayOperations
@testable import GatewayServer

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
