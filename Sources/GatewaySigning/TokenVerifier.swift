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
    /// The name of the key it was signed with.
    package let kid: String
    /// The key it was signed with; `nil` for what is no token, such as a certificate's grant.
    package let key: VerificationKey?
    /// `jti`; `nil` also for one that is longer than any that can be denied.
    package let jti: String?

    /// What a token grants, as put together by whoever has verified it.
    package init(
        issuer: String, subject: String, app: String, scopes: Set<Scope>, expires: Int64,
        validFrom: Int64 = 0, attributes: [String: [String]] = [:], kid: String,
        key: VerificationKey? = nil, jti: String? = nil
    ) {
        self.issuer = issuer
        self.subject = subject
        self.app = app
        self.scopes = scopes
        self.expires = expires
        self.validFrom = validFrom
        self.attributes = attributes
        self.kid = kid
        self.key = key
        self.jti = jti
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
        let verified = try authenticate(token, now: now)
        try checkDenial(of: verified, now: now)
        return verified
    }

    /// Judges a token by all but the list of denied tokens.
    func authenticate(_ token: [UInt8], now: Int64) throws(TokenRejection) -> VerifiedToken {
        let jws: JWS
        do throws(JWSRejection) {
            jws = try JWS(parsing: token, bytesMax: JWS.tokenBytesMax)
        } catch {
            throw TokenRejection(error)
        }
        guard let object = try? JSONValue(parsing: jws.unverifiedPayload).objectValue else {
            throw .malformed
        }
        guard let iss = TokenClaims.issuer(of: object) else { throw .badClaims }
        guard let issuer = policy.issuer(iss, kid: jws.kid) else { throw .unknownIssuer }
        do throws(JWSRejection) {
            _ = try jws.verifiedPayload(by: issuer.keys, as: .token)
        } catch {
            throw TokenRejection(error)
        }
        let claims = try TokenClaims(object, limits: limits)
        try checkTimes(of: claims, now: now)
        guard !policy.audiences.isDisjoint(with: claims.audiences) else { throw .wrongAudience }
        try issuer.checkRights(app: claims.app, scopes: claims.scopes)
        return VerifiedToken(
            // The policy's own text: a token's would be kept for each.
            issuer: issuer.iss, subject: claims.sub, app: claims.app, scopes: claims.scopes,
            expires: claims.exp, validFrom: max(claims.nbf ?? 0, claims.iat ?? 0),
            attributes: claims.attributes, kid: jws.kid, key: issuer.keys[jws.kid],
            jti: claims.jti)
    }

    /// Refuses a token that is on the list of denied tokens.
    func checkDenial(of token: VerifiedToken, now: Int64) throws(TokenRejection) {
        if policy.denied.denies(token, now: now) { throw .denied }
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
}
