import GatewaySigning
import Synchronization

/// Counts the access policies that were in force so far.
final class AccessRevision: Sendable {
    private let count = Atomic<UInt64>(0)

    /// The revision in force now.
    var current: UInt64 { count.load(ordering: .acquiring) }

    /// A policy was replaced: what was admitted before has to be looked at again.
    func advance() { count.wrappingAdd(1, ordering: .acquiringAndReleasing) }
}

/// The access policy at one moment: keys and denied tokens, and the grants of client certificates.
struct AccessPolicy: Sendable {
    let tokens: TokenPolicy
    let grants: [Authorizer.CertificateGrant]

    /// Returns whether what was admitted under an earlier policy would be admitted under this one.
    /// The time at which it expires is not looked at.
    ///
    /// - Parameter now: In seconds since 1970.
    func admits(_ token: VerifiedToken, now: Int64) -> Bool {
        if token.key != nil { return tokens.trusts(token, now: now) }
        guard
            let grant = grants.first(where: { $0.uri.utf8.elementsEqual(token.subject.utf8) })
        else { return false }
        return grant.app.utf8.elementsEqual(token.app.utf8)
            && token.scopes.isSubset(of: grant.scopes)
    }
}

/// The token, or the certificate's grant, that a stream or poll was admitted by.
///
/// Between admission and opening the policy may be replaced, and its sweep over the open streams may
/// have passed. So whoever opens a stream asks again; that costs the comparison of two numbers
/// unless the policy changed.
struct StreamGrant: Sendable {
    /// The token it was admitted by.
    let token: VerifiedToken
    /// The revision in force before the token was judged.
    private let revision: UInt64
    private let authorizer: Authorizer

    /// - Parameter revision: Read before the token was judged.
    init(_ token: VerifiedToken, at revision: UInt64, by authorizer: Authorizer) {
        self.token = token
        self.revision = revision
        self.authorizer = authorizer
    }

    /// Whether the policy in force now still admits it.
    var isInForce: Bool {
        authorizer.revision.current == revision
            || authorizer.policy.admits(token, now: authorizer.now())
    }
}
