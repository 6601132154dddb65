import Synchronization

/// A ``TokenVerifier`` that caches the tokens it has accepted, and those whose signature was wrong.
///
/// Checking an Ed25519 signature takes some hundred microseconds, a client presents the same token
/// with each request. Only the SHA-256 of a token is kept. Refusals have a place of their own: what
/// strangers send does not push out what friends use. Only those are kept that no time changes; a
/// change of policy forgets all of them.
package final class CachedTokenVerifier: Sendable {
    /// Tokens remembered at most, unless told otherwise; about 500 bytes each.
    package static let entriesMaxDefault = 16_384
    /// Refusals remembered at most, unless told otherwise; about 100 bytes each.
    package static let refusalsMaxDefault = 4_096

    private struct State {
        var verifier: TokenVerifier
        /// Counts policies, so that a token judged by the last one is not kept under this one.
        var generation: UInt64 = 0
        var believed: RecentTokens<VerifiedToken>
        var refused: RecentTokens<TokenRejection>
    }

    private enum Answer {
        case believed(VerifiedToken)
        case refused(TokenRejection)
        case unknown
    }

    private let state: Mutex<State>

    /// A cache of at most `entriesMax` tokens and `refusalsMax` refusals in front of `verifier`.
    package init(
        _ verifier: TokenVerifier, entriesMax: Int = CachedTokenVerifier.entriesMaxDefault,
        refusalsMax: Int = CachedTokenVerifier.refusalsMaxDefault
    ) {
        state = Mutex(
            State(
                verifier: verifier, believed: RecentTokens(entriesMax: entriesMax),
                refused: RecentTokens(entriesMax: refusalsMax)))
    }

    /// Judges by another policy from now on, and forgets every token.
    package func replace(with verifier: TokenVerifier) {
        let forgotten = state.withLock { state in
            state.verifier = verifier
            state.generation += 1
            return (state.believed.removeAll(), state.refused.removeAll())
        }
        // Freed only now that nobody waits for the lock.
        _ = forgotten
    }

    /// The policy that tokens are judged by now.
    package var policy: TokenPolicy { state.withLock { $0.verifier.policy } }

    /// The number of accepted tokens in the cache.
    package var count: Int { state.withLock { $0.believed.count } }

    /// The number of refusals that are remembered now.
    package var refusalCount: Int { state.withLock { $0.refused.count } }

    /// Whether a token is remembered as valid and has not expired; costs no signature.
    package func isKnown(_ token: [UInt8], now: Int64) -> Bool {
        guard token.count <= JWS.tokenBytesMax, let digest = try? SHA256Digest(of: token) else {
            return false
        }
        return state.withLock { state in
            state.believed.find(digest)?
                .isCurrent(now: now, leeway: state.verifier.policy.leeway) ?? false
        }
    }

    /// Judges a token in the compact form; the answer is that of ``TokenVerifier/verify(_:now:)``.
    ///
    /// - Parameter now: seconds since 1970.
    /// - Throws: ``TokenRejection``.
    package func verify(
        _ token: [UInt8], now: Int64
    ) throws(TokenRejection) -> VerifiedToken {
        // What is too long would cost more to digest than to refuse.
        guard token.count <= JWS.tokenBytesMax else { throw .tooLarge }
        guard let digest = try? SHA256Digest(of: token) else {
            return try state.withLock { $0.verifier }.verify(token, now: now)
        }
        let (answer, verifier, generation) = state.withLock { state in
            (Self.find(digest, in: &state), state.verifier, state.generation)
        }
        switch answer {
        case .refused(let rejection): throw rejection
        case .believed(let known) where known.isCurrent(now: now, leeway: verifier.policy.leeway):
            try verifier.checkDenial(of: known, now: now)
            return known
        case .believed, .unknown: break
        }
        let verified: VerifiedToken
        do throws(TokenRejection) {
            // Not under the lock: others need not wait for this signature.
            verified = try verifier.authenticate(token, now: now)
        } catch {
            if error.isLastingAndCostly {
                remember(generation) { $0.refused.remember(error, as: digest) }
            }
            throw error
        }
        remember(generation) { $0.believed.remember(verified, as: digest) }
        try verifier.checkDenial(of: verified, now: now)
        return verified
    }

    private static func find(_ digest: SHA256Digest, in state: inout State) -> Answer {
        if let token = state.believed.find(digest) { return .believed(token) }
        if let rejection = state.refused.find(digest) { return .refused(rejection) }
        return .unknown
    }

    /// Changes what is remembered, unless the policy is another by now.
    ///
    /// - Parameter body: Returns what is forgotten, to be freed outside the lock.
    private func remember<Forgotten: Sendable>(
        _ generation: UInt64, _ body: (inout sending State) -> Forgotten?
    ) {
        let forgotten = state.withLock { state in
            state.generation == generation ? body(&state) : nil
        }
        _ = forgotten
    }
}
