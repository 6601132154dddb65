import WidgetModel

/// Mints the tokens ``TokenVerifier`` believes.
package struct TokenIssuer: Sendable {
    private let signer: JWSSigner
    private let iss: String
    private let aud: String

    /// An issuer called `iss` of tokens for the gateway at `aud`.
    package init(key: SigningKey, iss: String, aud: String) {
        signer = JWSSigner(key: key, type: "JWT")
        self.iss = iss
        self.aud = aud
    }

    /// Mints a token.
    ///
    /// - Parameters:
    ///   - sub: whom it is about: the client's id under ``Scope/client``.
    ///   - app: the app, or ``VerifiedToken/everyApp``.
    ///   - scopes: what its bearer may do.
    ///   - ttl: its life, seconds.
    ///   - attributes: what the issuer vouches for.
    ///   - now: seconds since 1970; `iat`, and `exp` is `ttl` later.
    ///   - jti: its name; a random one unless given.
    /// - Returns: the compact form.
    /// - Throws: ``SigningError``: `limitExceeded` when no gateway would read it for its length,
    ///   `cryptoFailed`.
    package func issue(
        sub: String, app: String, scopes: Set<Scope>, ttl: Int64,
        attributes: [String: [String]] = [:], now: Int64, jti: String? = nil
    ) throws(SigningError) -> String {
        let jti = if let jti { jti } else { Base64URL.string(try secureRandom(count: 12)) }
        var claims: JSONObject = [
            "iss": .string(iss), "sub": .string(sub), "aud": .string(aud), "app": .string(app),
            "scope": .string(Scope.claim(scopes)), "iat": .integer(now),
            "exp": .integer(now.addingClamped(ttl)), "jti": .string(jti),
        ]
        if !attributes.isEmpty { claims["attributes"] = attributesJSON(attributes) }
        let token = try signer.sign(payload: JSONValue.object(claims).serialized)
        guard token.count <= JWS.tokenBytesMax else {
            throw SigningError(
                .limitExceeded, "the token would be longer than \(JWS.tokenBytesMax) bytes")
        }
        return String(decoding: token, as: UTF8.self)
    }
}
