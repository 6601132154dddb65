import WidgetModel

/// Somebody whose tokens are believed, and how far.
package struct TrustedIssuer: Sendable, Equatable {
    /// Apps an issuer speaks for.
    package enum Apps: Sendable, Equatable {
        /// Every app, also those to come, and `*`.
        case any
        /// These.
        case only(Set<String>)

        func contains(_ app: String) -> Bool {
            switch self {
            case .any: true
            case .only(let apps): apps.contains(app)
            }
        }
    }

    /// The `iss` of its tokens. Where several entries share it, the one whose keys hold the token's
    /// `kid` counts.
    package let iss: String
    /// Apps it speaks for.
    package let apps: Apps
    /// Scopes it may grant.
    package let scopes: Set<Scope>
    /// Keys it signs with.
    package let keys: JWKSet

    /// An issuer with its rights.
    package init(iss: String, apps: Apps, scopes: Set<Scope>, keys: JWKSet) {
        self.iss = iss
        self.apps = apps
        self.scopes = scopes
        self.keys = keys
    }

    /// Checks that the issuer may vouch for scopes in an app.
    func checkRights(app: String, scopes: Set<Scope>) throws(TokenRejection) {
        guard scopes.isSubset(of: self.scopes) else { throw .foreignScope }
        if app == VerifiedToken.everyApp {
            guard scopes.contains(.operate) else { throw .wildcardApp }
            guard apps == .any else { throw .foreignApp }
        } else {
            guard apps.contains(app) else { throw .foreignApp }
        }
    }
}

/// What tokens are judged by.
package struct TokenPolicy: Sendable, Equatable {
    /// Who is believed.
    package var issuers: [TrustedIssuer]
    /// What `aud` must be or hold one of: the URLs the gateway goes by.
    package var audiences: Set<String>
    /// How far the clocks of an issuer and the gateway may differ, seconds.
    package var leeway: Int64
    /// Longest life of a token that carries ``Scope/client``, seconds. Devices are lost; a token of
    /// a year would outlive most reasons to trust one.
    package var clientLifetimeMax: Int64
    /// Tokens that are refused although they verify.
    package var denied: Denylist

    /// A policy.
    package init(
        issuers: [TrustedIssuer], audiences: Set<String>, leeway: Int64 = 60,
        clientLifetimeMax: Int64 = 30 * 24 * 3600, denied: Denylist = Denylist()
    ) {
        self.issuers = issuers
        self.audiences = audiences
        self.leeway = max(0, leeway)
        self.clientLifetimeMax = max(0, clientLifetimeMax)
        self.denied = denied
    }

    /// The entry that judges tokens of an issuer by a key: of several with this `iss` the first that
    /// has the key, or else the first.
    func issuer(_ iss: String, kid: String) -> TrustedIssuer? {
        let named = issuers.lazy.filter { $0.iss.hasSameBytes(as: iss) }
        return named.first { $0.keys[kid] != nil } ?? named.first
    }

    /// Returns whether a token that was accepted under an earlier policy is accepted under this one:
    /// its key is unchanged, its issuer may grant all that it grants, and it is not denied. Expiry is
    /// not checked.
    package func trusts(_ token: VerifiedToken, now: Int64) -> Bool {
        guard let key = token.key, let issuer = issuer(token.issuer, kid: key.kid),
            issuer.keys[key.kid] == key,
            (try? issuer.checkRights(app: token.app, scopes: token.scopes)) != nil
        else { return false }
        return !denied.denies(token, now: now)
    }
}
