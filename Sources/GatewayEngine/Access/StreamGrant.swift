import GatewaySigning

/// The token or certificate grant that admitted a stream or poll.
///
/// The policy may be replaced, and its sweep over the open streams may end, between admission and
/// opening. So the code that opens a stream checks the grant again; that compares two numbers
/// unless the policy changed.
package struct StreamGrant: Sendable {
    let token: VerifiedToken
    /// The revision in force before the token was judged.
    private let revision: UInt64
    private let access: AccessState

    /// - Parameter revision: Read before the token was judged.
    package init(_ token: VerifiedToken, at revision: UInt64, by access: AccessState) {
        self.token = token
        self.revision = revision
        self.access = access
    }

    /// Whether the policy in force now still admits the token.
    var isInForce: Bool {
        access.revision.current == revision
            || access.policy.admits(token, now: access.now())
    }
}
