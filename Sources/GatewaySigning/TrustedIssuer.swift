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

    /// A policy.
    package init(
        issuers: [TrustedIssuer], audiences: Set<String>, leeway: Int64 = 60,
        clientLifetimeMax: Int64 = 30 * 24 * 3600
    ) {
        self.issuers = issuers
        self.audiences = audiences
        self.leeway = max(0, leeway)
        self.clientLifetimeMax = max(0, clientLifetimeMax)
    }
}
