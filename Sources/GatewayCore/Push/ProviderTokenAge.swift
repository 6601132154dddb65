/// Decides when to create APNs' provider token: one for each key, shared by all connections and
/// pushes, because APNs rejects both tokens that are too old and tokens that change too often.
///
/// The time in use is measured on the monotonic clock, ms; the token's own age (`iat`) on the wall
/// clock, ms since 1970, which is what APNs checks.
package struct ProviderTokenAge: Sendable, Hashable {
    /// The shortest time that a token is used, ms.
    package static let usedMin: Int64 = 1_200_000
    /// The longest time that a token is used, ms.
    package static let usedMax: Int64 = 3_300_000
    /// The longest time that a token's `iat` may be in the future, ms.
    package static let aheadMax: Int64 = 60_000

    /// A token, identified by its number.
    package struct Token: Sendable, Hashable {
        /// The number of the token, from 1.
        package let number: UInt64
        /// The time of creation, ms on the monotonic clock.
        package let mintedAt: Int64
        /// The `iat` of the token, ms since 1970.
        package let issuedAt: Int64

        /// Returns whether the token is young enough by both clocks, and not issued in the future.
        func isFit(now: Int64, wall: Int64) -> Bool {
            now.elapsed(since: mintedAt) < ProviderTokenAge.usedMax
                && wall.elapsed(since: issuedAt) < ProviderTokenAge.usedMax
                && issuedAt.elapsed(since: wall) <= ProviderTokenAge.aheadMax
        }
    }

    /// The reaction to a token that was rejected as expired.
    package enum Expiry: Sendable, Hashable {
        /// Push again with the current token: this one was replaced already.
        case useCurrent
        /// Create a new token and push again.
        case mint
        /// The token was young, so this machine's clock is wrong, and another token would be
        /// rejected too.
        case clockIsWrong
    }

    private var current: Token?
    private var older: Token?
    private var returnedToOlder = false

    package init() {}

    /// Returns the token to push with; `nil` when one must be created first.
    package func token(now: Int64, wall: Int64) -> Token? {
        if returnedToOlder, let older, older.isFit(now: now, wall: wall) { return older }
        return current.flatMap { $0.isFit(now: now, wall: wall) ? $0 : nil }
    }

    /// Records a token, which may have been created and used elsewhere. Its number accompanies
    /// every push that uses it.
    ///
    /// - Parameter issuedAt: The `iat` of the token, ms since 1970.
    package mutating func adopted(issuedAt: Int64, now: Int64, wall: Int64) -> Token {
        let age = min(wall.elapsed(since: issuedAt), Self.usedMax)
        let token = Token(
            number: (current?.number ?? 0) + 1, mintedAt: now.later(by: -age), issuedAt: issuedAt)
        older = current
        current = token
        returnedToOlder = false
        return token
    }

    /// Returns the reaction to a token that APNs rejected as expired.
    package func expired(_ token: Token, now: Int64, wall: Int64) -> Expiry {
        // Many pushes in flight use the same token, and only the first of them creates a new one.
        if let inUse = self.token(now: now, wall: wall), inUse.number > token.number {
            return .useCurrent
        }
        let isYoung =
            now.elapsed(since: token.mintedAt) < Self.usedMin
            && token.isFit(now: now, wall: wall)
        return isYoung ? .clockIsWrong : .mint
    }

    /// Records that APNs rejected a token as created too soon after the previous one, which is used
    /// again as long as it is usable.
    package mutating func refusedAsTooSoon(_ token: Token) {
        guard token == current, older != nil else { return }
        returnedToOlder = true
    }
}
