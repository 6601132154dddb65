import WidgetModel

/// An issuer whose tokens are accepted, with its rights.
package struct TrustedIssuer: Sendable, Equatable {
    package enum Apps: Sendable, Equatable {
        /// All apps, including future ones, and `*`.
        case any
        case only(Set<String>)

        func contains(_ app: String) -> Bool {
            switch self {
            case .any: true
            case .only(let apps): apps.containsBytes(of: app)
            }
        }
    }

    /// The `iss` of its tokens. If several entries have the same value, the one whose keys contain
    /// the token's `kid` applies.
    package let iss: String
    package let apps: Apps
    /// The scopes that it may grant.
    package let scopes: Set<Scope>
    /// The keys that it signs with.
    package let keys: JWKSet

    package init(iss: String, apps: Apps, scopes: Set<Scope>, keys: JWKSet) {
        self.iss = iss
        self.apps = apps
        self.scopes = scopes
        self.keys = keys
    }

    /// Checks that the issuer may grant scopes in an app.
    func checkRights(app: String, scopes: Set<Scope>) throws(TokenRejection) {
        guard scopes.isSubset(of: self.scopes) else { throw .foreignScope }
        if app == VerifiedToken.everyApp {
            guard Scope.grants(.operatorRead, from: scopes) else { throw .wildcardApp }
            guard apps == .any else { throw .foreignApp }
        } else {
            guard apps.contains(app) else { throw .foreignApp }
        }
    }
}

/// The policy for verifying tokens.
package struct TokenPolicy: Sendable, Equatable {
    package var issuers: [TrustedIssuer]
    /// The accepted audiences: the URLs of the gateway. At least one must be in `aud`.
    package var audiences: Set<String>
    /// The tolerated difference between the clocks of an issuer and the gateway, seconds.
    package var leeway: Int64 = 60
    /// The longest lifetime of a token with ``Scope/client``, seconds. Devices get lost, and a
    /// token valid for a year would outlive most reasons to trust it.
    package var clientLifetimeMax: Int64 = 30 * 24 * 3600
    /// The valid tokens to reject.
    package var denied: Denylist

    package init(
        issuers: [TrustedIssuer], audiences: Set<String>, denied: Denylist = Denylist()
    ) {
        self.issuers = issuers
        self.audiences = audiences
        self.denied = denied
    }

    /// Returns the end of a token's validity, seconds since 1970.
    package func end(of token: VerifiedToken) -> Int64 { token.expires.addingClamped(leeway) }

    /// Returns the entry for tokens of an issuer with a key: of several with this `iss` the first
    /// that has the key, or otherwise the first.
    func issuer(_ iss: String, kid: String) -> TrustedIssuer? {
        let named = issuers.lazy.filter { $0.iss.hasSameBytes(as: iss) }
        return named.first { $0.keys[kid] != nil } ?? named.first
    }

    /// Returns whether a token that was accepted under an earlier policy is accepted under this
    /// one: its key is unchanged, its issuer may grant all its rights, and it is not denied. Does
    /// not check the expiry.
    package func trusts(_ token: VerifiedToken, now: Int64) -> Bool {
        guard let key = token.key, let issuer = issuer(token.issuer, kid: key.kid),
            issuer.keys[key.kid] == key,
            (try? issuer.checkRights(app: token.app, scopes: token.scopes)) != nil
        else { return false }
        return !denied.denies(token, now: now)
    }
}
