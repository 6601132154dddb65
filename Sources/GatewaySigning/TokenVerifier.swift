import WidgetModel

/// A token that was believed, and what it grants.
package struct VerifiedToken: Sendable, Equatable {
    /// `app` of a token that concerns every app.
    package static let everyApp = "*"

    /// Who vouches.
    package let issuer: String
    /// Whom it is about: the client's id under ``Scope/client``.
    package let subject: String
    /// The app, or ``everyApp``.
    package let app: String
    /// What its bearer may do; scopes nobody here knows are left out.
    package let scopes: Set<Scope>
    /// When it ends, seconds since 1970, leeway not counted.
    package let expires: Int64
    /// When it begins, seconds since 1970, leeway not counted.
    package let validFrom: Int64
    /// Attributes the issuer vouches for; they override those of a registration.
    package let attributes: [String: [String]]
    /// The key it was signed with.
    package let kid: String

    /// What a token grants, as put together by whoever has verified it.
    package init(
        issuer: String, subject: String, app: String, scopes: Set<Scope>, expires: Int64,
        validFrom: Int64 = 0, attributes: [String: [String]] = [:], kid: String
    ) {
        self.issuer = issuer
        self.subject = subject
        self.app = app
        self.scopes = scopes
        self.expires = expires
        self.validFrom = validFrom
        self.attributes = attributes
        self.kid = kid
    }

    /// Whether it concerns `app`.
    package func concerns(app: String) -> Bool {
        self.app == app || self.app == Self.everyApp
    }

    /// Whether it concerns `app` and grants `scope` there.
    package func grants(_ scope: Scope, for app: String) -> Bool {
        scopes.contains(scope) && concerns(app: app)
    }

    /// Whether it is valid at `now`.
    func isCurrent(now: Int64, leeway: Int64) -> Bool {
        now < expires.addingClamped(leeway) && validFrom <= now.addingClamped(leeway)
    }
}

/// Judges bearer tokens (RFC 7519) by a policy.
package struct TokenVerifier: Sendable {
    /// What it judges by.
    package let policy: TokenPolicy
    private let limits: Limits

    /// A verifier of `policy`; of `limits` those on names and attributes count.
    package init(policy: TokenPolicy, limits: Limits = Limits()) {
        self.policy = policy
        self.limits = limits
    }

    /// Judges a token in the compact form.
    ///
    /// - Parameter now: seconds since 1970.
    /// - Throws: ``TokenRejection``. Whatever is wrong with the claims of a token that is not
    ///   signed properly is not told: only `iss` is looked at before the signature.
    package func verify(
        _ token: [UInt8], now: Int64
    ) throws(TokenRejection) -> VerifiedToken {
        let jws: JWS
        do throws(JWSRejection) {
            jws = try JWS(parsing: token, bytesMax: JWS.tokenBytesMax)
        } catch {
            throw TokenRejection(error)
        }
        guard let object = try? JSONValue(parsing: jws.unverifiedPayload).objectValue else {
            throw .malformed
        }
        let issuer = try issuer(TokenClaims.issuer(of: object), kid: jws.kid)
        do throws(JWSRejection) {
            _ = try jws.verifiedPayload(by: issuer.keys, as: .token)
        } catch {
            throw TokenRejection(error)
        }
        let claims = try TokenClaims(object, limits: limits)
        try checkTimes(of: claims, now: now)
        guard !policy.audiences.isDisjoint(with: claims.audiences) else { throw .wrongAudience }
        try checkRights(of: claims, issuer: issuer)
        return VerifiedToken(
            issuer: claims.iss, subject: claims.sub, app: claims.app, scopes: claims.scopes,
            expires: claims.exp, validFrom: max(claims.nbf ?? 0, claims.iat ?? 0),
            attributes: claims.attributes, kid: jws.kid)
    }

    private func issuer(
        _ iss: String?, kid: String
    ) throws(TokenRejection) -> TrustedIssuer {
        guard let iss else { throw .badClaims }
        let named = policy.issuers.filter { $0.iss == iss }
        guard let first = named.first else { throw .unknownIssuer }
        return named.first { $0.keys[kid] != nil } ?? first
    }

    private func checkTimes(of claims: TokenClaims, now: Int64) throws(TokenRejection) {
        let latestNow = now.addingClamped(policy.leeway)
        guard now < claims.exp.addingClamped(policy.leeway) else { throw .expired }
        guard claims.nbf ?? 0 <= latestNow, claims.iat ?? 0 <= latestNow else {
            throw .notYetValid
        }
        if claims.scopes.contains(.client) {
            // Without `iat` the rest of its life counts, by a clock that may be behind.
            guard claims.exp - (claims.iat ?? latestNow) <= policy.clientLifetimeMax else {
                throw .livesTooLong
            }
        }
    }

    private func checkRights(
        of claims: TokenClaims, issuer: TrustedIssuer
    ) throws(TokenRejection) {
        guard claims.scopes.isSubset(of: issuer.scopes) else { throw .foreignScope }
        if claims.app == VerifiedToken.everyApp {
            guard claims.scopes.contains(.operate) else { throw .wildcardApp }
            guard issuer.apps == .any else { throw .foreignApp }
        } else {
            guard issuer.apps.contains(claims.app) else { throw .foreignApp }
        }
    }
}
