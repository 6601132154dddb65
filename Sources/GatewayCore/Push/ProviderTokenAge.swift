/// When APNs' provider token is minted: once for each key, and shared by all connections and
/// pushes, for APNs refuses both tokens that are too old and tokens that change too often.
///
/// How long it was used goes by the monotonic clock, in milliseconds; what it says of its own age
/// (`iat`) goes by the wall clock, in milliseconds since 1970, and is what APNs judges.
package struct ProviderTokenAge: Sendable, Hashable {
    /// A token is used at least this long, in milliseconds.
    package static let usedMin: Int64 = 1_200_000
    /// A token is used no longer than this, in milliseconds.
    package static let usedMax: Int64 = 3_300_000
    /// How far in the future a token's `iat` may lie, in milliseconds.
    package static let aheadMax: Int64 = 60_000

    /// A token, by its number.
    package struct Token: Sendable, Hashable {
        /// Its number; the first has 1.
        package let number: UInt64
        /// When it was minted, in monotonic milliseconds.
        package let mintedAt: Int64
        /// Its `iat`, in milliseconds since 1970.
        package let issuedAt: Int64

        /// Whether it is of use: young enough by both clocks, and not of the future.
        func isFit(now: Int64, wall: Int64) -> Bool {
            now.elapsed(since: mintedAt) < ProviderTokenAge.usedMax
                && wall.elapsed(since: issuedAt) < ProviderTokenAge.usedMax
                && issuedAt.elapsed(since: wall) <= ProviderTokenAge.aheadMax
        }
    }

    /// What to do about a token that was refused as expired.
    package enum Expiry: Sendable, Hashable {
        /// Push again with the token there is now: this one was replaced already.
        case useCurrent
        /// Mint one and push again.
        case mint
        /// It was young: this machine's clock is wrong, and another token would fare no better.
        case clockIsWrong
    }

    private var current: Token?
    private var older: Token?
    private var returnedToOlder = false

    /// No token was minted.
    package init() {}

    /// The token to push with; `nil` when one is to be minted first.
    package func token(now: Int64, wall: Int64) -> Token? {
        if returnedToOlder, let older, older.isFit(now: now, wall: wall) { return older }
        return current.flatMap { $0.isFit(now: now, wall: wall) ? $0 : nil }
    }

    /// A token was minted. Its number goes with every push that uses it.
    package mutating func minted(now: Int64, wall: Int64) -> Token {
        adopted(issuedAt: wall, now: now, wall: wall)
    }

    /// A token that was minted elsewhere, and may have been used there since, is used here as well.
    ///
    /// - Parameter issuedAt: Its `iat`, in milliseconds since 1970.
    package mutating func adopted(issuedAt: Int64, now: Int64, wall: Int64) -> Token {
        let age = min(wall.elapsed(since: issuedAt), Self.usedMax)
        let token = Token(
            number: (current?.number ?? 0) + 1, mintedAt: now.later(by: -age), issuedAt: issuedAt)
        older = current
        current = token
        returnedToOlder = false
        return token
    }

    /// APNs refused a token as expired.
    package func expired(_ token: Token, now: Int64, wall: Int64) -> Expiry {
        // Many pushes are under way with the same token, and only the first of them mints.
        if let inUse = self.token(now: now, wall: wall), inUse.number > token.number {
            return .useCurrent
        }
        let isYoung =
            now.elapsed(since: token.mintedAt) < Self.usedMin
            && token.isFit(now: now, wall: wall)
        return isYoung ? .clockIsWrong : .mint
    }

    /// APNs refused a token as minted too soon after the one before, which is used again as long
    /// as it is of use.
    package mutating func refusedAsTooSoon(_ token: Token) {
        guard token == current, older != nil else { return }
        returnedToOlder = true
    }
}
