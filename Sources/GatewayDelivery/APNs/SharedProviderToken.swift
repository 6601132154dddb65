/// A provider token that all nodes share.
package struct SharedProviderToken: Sendable, Hashable {
    /// The token text, which is a secret.
    package let text: String
    /// Its `iat`, in seconds since 1970.
    package let issuedAt: Int64

    package init(text: String, issuedAt: Int64) {
        self.text = text
        self.issuedAt = issuedAt
    }
}

extension SharedProviderToken: CustomStringConvertible, CustomReflectable {
    /// A description without the token, so that printing never shows it.
    package var description: String { "SharedProviderToken(iat \(issuedAt))" }
    /// An empty mirror: a dump must not show the token.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// A store for the provider token of one key, through which all nodes use the same token: Apple
/// refuses tokens that change more often than every 20 minutes.
package struct ProviderTokenShare: Sendable {
    /// Returns the stored token; `nil` if there is none.
    package var read: @Sendable () async -> SharedProviderToken?
    /// Replaces the first token with the second, if the first is still stored. Returns the token
    /// that is stored afterwards: the new one, or that of a faster node.
    package var replace:
        @Sendable (_ old: SharedProviderToken?, _ new: SharedProviderToken) async ->
            SharedProviderToken

    /// A store with these two operations.
    package init(
        read: @escaping @Sendable () async -> SharedProviderToken?,
        replace:
            @escaping @Sendable (_ old: SharedProviderToken?, _ new: SharedProviderToken) async ->
            SharedProviderToken
    ) {
        (self.read, self.replace) = (read, replace)
    }
}
