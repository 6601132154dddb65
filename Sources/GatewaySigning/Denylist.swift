import WidgetModel

/// A list of tokens to reject although they are valid: single tokens by their `jti`, or all of an
/// app's subject. Names are compared byte by byte.
package struct Denylist: Sendable, Equatable {
    package static let entriesMax = 10_000

    /// The tokens that an entry denies.
    package enum Match: Sendable, Equatable {
        /// The token with this `jti`, whoever issued it.
        case token(jti: String)
        /// Every token with this `app` and `sub`.
        case subject(app: String, sub: String)
    }

    package struct Entry: Sendable, Equatable {
        /// The tokens that it denies.
        package let match: Match
        /// The end of the entry, seconds since 1970; `nil` for never.
        package let until: Int64?

        /// Creates an entry that denies matching tokens until a time, or forever.
        package init(_ match: Match, until: Int64? = nil) {
            self.match = match
            self.until = until
        }
    }

    private struct Subject: Hashable {
        let app: ExactText
        let sub: ExactText
    }

    /// The end of each entry.
    private var tokens: [ExactText: Int64] = [:]
    private var subjects: [Subject: Int64] = [:]

    /// Creates a list; if several entries match the same tokens, the latest end counts.
    package init(_ entries: [Entry] = []) {
        for entry in entries {
            let until = entry.until ?? .max
            switch entry.match {
            case .token(let jti):
                tokens[ExactText(jti), default: .min].raise(to: until)
            case .subject(let app, let sub):
                let subject = Subject(app: ExactText(app), sub: ExactText(sub))
                subjects[subject, default: .min].raise(to: until)
            }
        }
    }

    /// The number of distinct entries.
    package var count: Int { tokens.count + subjects.count }

    /// Returns whether a token is denied at `now`, in seconds since 1970.
    package func denies(_ token: VerifiedToken, now: Int64) -> Bool {
        if !tokens.isEmpty, let jti = token.jti, let until = tokens[ExactText(jti)], now < until {
            return true
        }
        guard !subjects.isEmpty else { return false }
        let subject = Subject(app: ExactText(token.app), sub: ExactText(token.subject))
        return subjects[subject].map { now < $0 } ?? false
    }
}

extension Int64 {
    fileprivate mutating func raise(to other: Int64) { self = Swift.max(self, other) }
}
