/// A provider token as all nodes use it.
package struct SharedProviderToken: Sendable, Hashable {
    /// The token: a secret.
    package let text: String
    /// Its `iat`, in seconds since 1970.
    package let issuedAt: Int64

    /// A token.
    package init(text: String, issuedAt: Int64) {
        self.text = text
        self.issuedAt = issuedAt
    }
}

extension SharedProviderToken: CustomStringConvertible, CustomReflectable {
    /// Without the token, whatever prints it.
    package var description: String { "SharedProviderToken(iat \(issuedAt))" }
    /// Nothing: a dump must not show the token.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Where nodes put the provider token of one key, so that all of them use the same one: Apple
/// refuses tokens that change more often than every 20 minutes.
package struct ProviderTokenShare: Sendable {
    /// The token there is.
    package var read: @Sendable () async -> SharedProviderToken?
    /// Puts the second token in the place of the first, if that is still there.
    ///
    /// Returns the token that is there then: the new one, or that of a node which was faster.
    package var replace:
        @Sendable (_ old: SharedProviderToken?, _ new: SharedProviderToken) async ->
            SharedProviderToken

    /// A place, by what is done there.
    package init(
        read: @escaping @Sendable () async -> SharedProviderToken?,
        replace:
            @escaping @Sendable (_ old: SharedProviderToken?, _ new: SharedProviderToken) async ->
            SharedProviderToken
    ) {
        (self.read, self.replace) = (read, replace)
    }
}
