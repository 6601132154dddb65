import Synchronization

/// A ``TokenVerifier`` with a cache of accepted tokens and of rejections that needed a signature
/// check.
///
/// Verifying an Ed25519 signature takes some hundred microseconds, and a client presents the same
/// token with each request. Only the SHA-256 of a token is stored. Rejections have a cache of their
/// own, so that an attacker's tokens evict no valid ones; those that depend on the time are not
/// stored. A change of policy clears both.
package final class CachedTokenVerifier: Sendable {
    /// The default limit of cached tokens; each takes about 500 bytes.
    package static let entriesMaxDefault = 16_384
    /// The default limit of cached rejections; each takes about 100 bytes.
    package static let refusalsMaxDefault = 4_096

    private struct State {
        var verifier: TokenVerifier
        /// The number of policy changes, so that a verdict under the previous policy is not stored.
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
    private let onUnknownKey: @Sendable (_ issuer: String) -> Void

    /// Creates a cache of at most `entriesMax` tokens and `refusalsMax` rejections. It calls
    /// `onUnknownKey` with the `iss` of each token that names a key which its issuer does not have.
    package init(
        _ verifier: TokenVerifier, entriesMax: Int = CachedTokenVerifier.entriesMaxDefault,
        refusalsMax: Int = CachedTokenVerifier.refusalsMaxDefault,
        onUnknownKey: @escaping @Sendable (_ issuer: String) -> Void = { _ in }
    ) {
        self.onUnknownKey = onUnknownKey
        state = Mutex(
            State(
                verifier: verifier, believed: RecentTokens(entriesMax: entriesMax),
                refused: RecentTokens(entriesMax: refusalsMax)))
    }

    /// Replaces the policy and clears the cache.
    package func replace(with verifier: TokenVerifier) {
        let forgotten = state.withLock { state in
            state.verifier = verifier
            state.generation += 1
            return (state.believed.removeAll(), state.refused.removeAll())
        }
        // Freed here, after the lock is released.
        _ = forgotten
    }

    package var policy: TokenPolicy { state.withLock { $0.verifier.policy } }

    /// The number of accepted tokens in the cache.
    package var count: Int { state.withLock { $0.believed.count } }

    /// The number of cached rejections.
    package var refusalCount: Int { state.withLock { $0.refused.count } }

    /// Verifies a token in compact serialization, with the same result as
    /// ``TokenVerifier/verify(_:now:)``.
    ///
    /// - Parameters:
    ///   - now: The time in seconds since 1970.
    ///   - permit: Asked before a token without a cached verdict is checked, with whether it names a
    ///     trusted key; without permission the token counts as denied.
    /// - Throws: ``TokenRejection``.
    package func verify(
        _ token: [UInt8], now: Int64,
        permit: (_ namesTrustedKey: Bool) -> Bool = { _ in true }
    ) throws(TokenRejection) -> VerifiedToken {
        // Hashing a token that is too long would cost more than rejecting it.
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
        case .believed(let known)
        where now >= known.expires.addingClamped(verifier.policy.leeway):
            throw .expired
        case .believed, .unknown:
            guard permit(verifier.namesTrustedKey(token)) else { throw .denied }
        }
        let verified: VerifiedToken
        do throws(TokenRejection) {
            // Outside the lock, so that other threads need not wait for this signature.
            verified = try verifier.authenticate(token, now: now)
        } catch {
            if error == .unknownKey, let issuer = verifier.issuer(of: token) {
                onUnknownKey(issuer.iss)
            }
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

    /// Changes the cache, unless the policy changed meanwhile. `body` returns the removed entries,
    /// which are freed outside the lock.
    private func remember<Forgotten: Sendable>(
        _ generation: UInt64, _ body: (inout sending State) -> Forgotten?
    ) {
        let forgotten = state.withLock { state in
            state.generation == generation ? body(&state) : nil
        }
        _ = forgotten
    }
}
