import GatewayOperations
import GatewaySigning
import Synchronization

/// A counter of the access policies that have been in force.
package final class AccessRevision: Sendable {
    private let count = Atomic<UInt64>(0)

    /// The first revision.
    package init() {}

    /// The revision in force now.
    package var current: UInt64 { count.load(ordering: .acquiring) }

    /// Records that the policy was replaced: earlier admissions have to be checked again.
    package func advance() { count.wrappingAdd(1, ordering: .acquiringAndReleasing) }
}

/// The access policy at one moment: keys and denied tokens, and the grants of client certificates.
package struct AccessPolicy: Sendable {
    let tokens: TokenPolicy
    let grants: [CertificateGrant]

    /// Returns whether a token admitted under an earlier policy would be admitted under this one.
    /// Ignores the token's expiry.
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

/// The token verifier and the grants in force, shared by everything that admits requests.
package struct AccessState: Sendable {
    package let verifier: CachedTokenVerifier
    package let grants: CertificateGrants
    /// Advances whenever the policy of `verifier` or `grants` changes.
    package let revision: AccessRevision
    /// Seconds since 1970.
    package let now: @Sendable () -> Int64

    package init(
        verifier: CachedTokenVerifier, grants: CertificateGrants, revision: AccessRevision,
        now: @escaping @Sendable () -> Int64
    ) {
        self.verifier = verifier
        self.grants = grants
        self.revision = revision
        self.now = now
    }

    /// The policy in force now.
    package var policy: AccessPolicy { AccessPolicy(tokens: verifier.policy, grants: grants.all) }
}

/// The grants in force.
package final class CertificateGrants: Sendable {
    private let held: Mutex<[CertificateGrant]>

    package init(_ grants: [CertificateGrant]) {
        held = Mutex(grants)
    }

    package var all: [CertificateGrant] { held.withLock { $0 } }

    package func replace(with grants: [CertificateGrant]) {
        held.withLock { $0 = grants }
    }
}
