import Synchronization

/// A ``TokenVerifier`` that remembers the tokens it has believed.
///
/// Checking an Ed25519 signature takes some hundred microseconds, a client presents the same token
/// with each request. Only the SHA-256 of a token is kept, and refusals are not: what strangers
/// send must not push out what friends use. Memory is bounded by two halves: when the younger is
/// full it becomes the older, and what nobody asked for meanwhile is forgotten with the oldest.
package final class CachedTokenVerifier: Sendable {
    /// Tokens remembered at most, unless told otherwise; about 500 bytes each.
    package static let entriesMaxDefault = 16_384

    private typealias Half = [SHA256Digest: VerifiedToken]

    private struct State {
        var verifier: TokenVerifier
        /// Counts policies, so that a token judged by the last one is not kept under this one.
        var generation: UInt64 = 0
        var young = Half()
        var old = Half()
    }

    private let state: Mutex<State>
    private let halfMax: Int

    /// A cache of at most `entriesMax` tokens in front of `verifier`.
    package init(
        _ verifier: TokenVerifier, entriesMax: Int = CachedTokenVerifier.entriesMaxDefault
    ) {
        halfMax = max(1, entriesMax / 2)
        state = Mutex(State(verifier: verifier))
    }

    /// Judges by another policy from now on, and forgets every token.
    package func replace(with verifier: TokenVerifier) {
        let forgotten = state.withLock { state in
            defer {
                state.verifier = verifier
                state.generation += 1
                state.young = [:]
                state.old = [:]
            }
            return (state.young, state.old)
        }
        // Freed only now that nobody waits for the lock.
        _ = forgotten
    }

    /// How many tokens are remembered now.
    package var count: Int {
        state.withLock { $0.young.count + $0.old.count }
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
        let (known, verifier, generation) = state.withLock { state in
            (Self.find(digest, in: &state, halfMax), state.verifier, state.generation)
        }
        if let known, known.isCurrent(now: now, leeway: verifier.policy.leeway) { return known }
        // Not under the lock: others need not wait for this signature.
        let verified = try verifier.verify(token, now: now)
        let forgotten = state.withLock { state in
            state.generation == generation
                ? Self.remember(verified, as: digest, in: &state, halfMax) : nil
        }
        _ = forgotten
        return verified
    }

    private static func find(
        _ digest: SHA256Digest, in state: inout State, _ halfMax: Int
    ) -> VerifiedToken? {
        if let token = state.young[digest] { return token }
        guard let token = state.old[digest] else { return nil }
        // Used, so it moves up; where there is no room the next one that is verified makes some.
        if state.young.count < halfMax {
            state.young[digest] = token
            state.old[digest] = nil
        }
        return token
    }

    /// Puts a token into the younger half.
    ///
    /// - Returns: what is forgotten for it, for the caller to free outside the lock.
    private static func remember(
        _ token: VerifiedToken, as digest: SHA256Digest, in state: inout State, _ halfMax: Int
    ) -> Half? {
        var forgotten: Half?
        if state.young.count >= halfMax, state.young[digest] == nil {
            forgotten = state.old
            state.old = state.young
            state.young = [:]
        }
        state.old[digest] = nil
        state.young[digest] = token
        return forgotten
    }
}
