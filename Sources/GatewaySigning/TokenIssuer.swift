import WidgetModel

/// Issues tokens that ``TokenVerifier`` accepts.
package struct TokenIssuer: Sendable {
    private let signer: JWSSigner
    private let iss: String
    private let aud: String

    /// Creates an issuer called `iss` of tokens for the gateway at `aud`.
    package init(key: SigningKey, iss: String, aud: String) {
        signer = JWSSigner(key: key, type: "JWT")
        self.iss = iss
        self.aud = aud
    }

    /// Issues a token.
    ///
    /// - Parameters:
    ///   - sub: The subject: the client's id with ``Scope/client``.
    ///   - app: The app, or ``VerifiedToken/everyApp``.
    ///   - scopes: The permissions of its bearer.
    ///   - ttl: The lifetime, seconds.
    ///   - attributes: The attributes that the issuer vouches for.
    ///   - now: The time in seconds since 1970 (`iat`); `exp` is `ttl` later.
    ///   - jti: The id of the token; `nil` for a random one.
    /// - Returns: The compact serialization.
    /// - Throws: ``SigningError``: `limitExceeded` if it is too long for any gateway to read,
    ///   `cryptoFailed`.
    package func issue(
        sub: String, app: String, scopes: Set<Scope>, ttl: Int64,
        attributes: [String: [String]] = [:], now: Int64, jti: String? = nil
    ) throws(SigningError) -> String {
        let jti = if let jti { jti } else { Base64.url.string(try secureRandom(count: 12)) }
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
