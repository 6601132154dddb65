import WidgetModel

/// The claims of a verified token. The cache of tokens and the open streams of a client share one.
package final class VerifiedToken: Sendable {
    package static let everyApp = "*"

    package let issuer: String
    /// The subject: the client's id with ``Scope/client``.
    package let subject: String
    /// The app, or ``everyApp``.
    package let app: String
    /// The permissions of the bearer; unknown scopes are omitted.
    package let scopes: Set<Scope>
    /// The expiry, seconds since 1970, without leeway.
    package let expires: Int64
    /// The start of validity, seconds since 1970, without leeway.
    package let validFrom: Int64
    /// The attributes the issuer vouches for; they override those of a registration.
    package let attributes: [String: [String]]
    /// The name of the signing key.
    package let kid: String
    /// The signing key; `nil` if there is no token, as for a certificate's grant.
    package let key: VerificationKey?
    /// The `jti`; also `nil` if it is longer than any that can be denied.
    package let jti: String?

    /// Creates the claims of a token that the caller has verified.
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

    package func concerns(app: String) -> Bool {
        self.app.hasSameBytes(as: app) || self.app == Self.everyApp
    }

    /// Returns whether the token is for `app` and grants `scope` there.
    package func grants(_ scope: Scope, for app: String) -> Bool {
        Scope.grants(scope, from: scopes) && concerns(app: app)
    }

    /// Returns whether the token is valid at `now`.
    func isCurrent(now: Int64, leeway: Int64) -> Bool {
        now < expires.addingClamped(leeway) && validFrom <= now.addingClamped(leeway)
    }
}

/// Verifies bearer tokens (RFC 7519) according to a policy.
package struct TokenVerifier: Sendable {
    package let policy: TokenPolicy
    private let limits: Limits

    /// Creates a verifier with a policy; of `limits`, those for names and attributes apply.
    package init(policy: TokenPolicy, limits: Limits = Limits()) {
        self.policy = policy
        self.limits = limits
    }

    /// Verifies a token in compact serialization.
    ///
    /// - Parameter now: The time in seconds since 1970.
    /// - Throws: ``TokenRejection``. Faults in the claims of a token without a valid signature are
    ///   not revealed: only `iss` is read before the signature is verified.
    package func verify(
        _ token: [UInt8], now: Int64
    ) throws(TokenRejection) -> VerifiedToken {
        let verified = try authenticate(token, now: now)
        try checkDenial(of: verified, now: now)
        return verified
    }

    /// Verifies a token except for the list of denied tokens.
    func authenticate(_ token: [UInt8], now: Int64) throws(TokenRejection) -> VerifiedToken {
        let jws = try JWS(parsing: token, bytesMax: JWS.tokenBytesMax)
        guard let object = try? JSONValue(parsing: jws.unverifiedPayload).objectValue else {
            throw .malformed
        }
        guard let iss = TokenClaims.issuer(of: object) else { throw .badClaim(.iss) }
        guard let issuer = policy.issuer(iss, kid: jws.kid) else { throw .unknownIssuer }
        _ = try jws.verifiedPayload(by: issuer.keys, as: .token)
        let claims = try TokenClaims(object, limits: limits)
        try checkTimes(of: claims, now: now)
        guard claims.audiences.contains(where: { policy.audiences.containsBytes(of: $0) }) else {
            throw .wrongAudience
        }
        try issuer.checkRights(app: claims.app, scopes: claims.scopes)
        return VerifiedToken(
            // The policy's own text is shared; a token's text would be stored for each token.
            issuer: issuer.iss, subject: claims.sub, app: claims.app, scopes: claims.scopes,
            expires: claims.exp, validFrom: max(claims.nbf ?? 0, claims.iat ?? 0),
            attributes: claims.attributes, kid: jws.kid, key: issuer.keys[jws.kid],
            jti: claims.jti)
    }

    /// Returns whether a token names a key of a trusted issuer. Cheap, because it reads only the
    /// header; one of more than 1 KiB counts as naming none.
    func namesTrustedKey(_ token: [UInt8]) -> Bool {
        guard let dot = token.firstIndex(of: UInt8(ascii: ".")), dot <= 1_024,
            let header = Base64.url.decode(token[..<dot]),
            let kid = (try? JSONValue(parsing: header))?.objectValue?["kid"]?.stringValue
        else { return false }
        return policy.issuers.contains { $0.keys[kid] != nil }
    }

    /// Returns the trusted issuer that a token names, whether or not it issued it.
    func issuer(of token: [UInt8]) -> TrustedIssuer? {
        guard let jws = try? JWS(parsing: token, bytesMax: JWS.tokenBytesMax),
            let object = try? JSONValue(parsing: jws.unverifiedPayload).objectValue
        else { return nil }
        return TokenClaims.issuer(of: object).flatMap { policy.issuer($0, kid: jws.kid) }
    }

    /// Rejects a token that is on the list of denied tokens.
    func checkDenial(of token: VerifiedToken, now: Int64) throws(TokenRejection) {
        if policy.denied.denies(token, now: now) { throw .denied }
    }

    private func checkTimes(of claims: TokenClaims, now: Int64) throws(TokenRejection) {
        let latestNow = now.addingClamped(policy.leeway)
        guard now < claims.exp.addingClamped(policy.leeway) else { throw .expired }
        if let nbf = claims.nbf, nbf > latestNow { throw .notYetValid(.nbf) }
        if let iat = claims.iat, iat > latestNow { throw .notYetValid(.iat) }
        if claims.scopes.contains(.client) {
            // Without `iat` the remaining lifetime counts, by a clock that may be behind.
            guard claims.exp - (claims.iat ?? latestNow) <= policy.clientLifetimeMax else {
                throw .livesTooLong
            }
        }
    }
}
