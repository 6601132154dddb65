/// The reason why a bearer token, or another signed text, is rejected. Never contains a part of it.
package enum TokenRejection: Error, Sendable, Hashable {
    /// The text exceeds the size limit of its kind.
    case tooLarge
    /// The text is not three parts of base64url, or its header violates RFC 7515 section 4.
    case malformed
    /// The header has `crit`, which requires an extension that is not supported here (RFC 7515
    /// section 4.1.11), or is itself invalid.
    case criticalHeader
    /// The header's `typ` belongs to another kind of message (RFC 8725 section 3.11).
    case wrongType
    /// No trusted issuer has this `iss`.
    case unknownIssuer
    /// The issuer has no key of this name.
    case unknownKey
    /// The issuer's key of this name is of a kind that is not supported.
    case unusableKey
    /// The header's `alg` is not the algorithm of the key.
    case wrongAlgorithm
    /// The token is not signed by the key it names.
    case badSignature
    /// A required claim is missing, or a claim has the wrong type.
    case badClaim(TokenClaim)
    /// The token was issued for another audience.
    case wrongAudience
    /// The token's `exp` has passed.
    case expired
    /// This claim of the token, `nbf` or `iat`, is in the future.
    case notYetValid(TokenClaim)
    /// A client token has a longer lifetime than allowed.
    case livesTooLong
    /// The issuer is not trusted for this app.
    case foreignApp
    /// The issuer may not grant one of the scopes.
    case foreignScope
    /// The token's `app` is `*` without ``Scope/operate`` or ``Scope/operatorRead``.
    case wildcardApp
    /// The token is on the list of denied tokens.
    case denied

    /// The stable short name, for problem types, metrics and logs.
    package var code: String {
        switch self {
        case .tooLarge: "token-too-large"
        case .malformed: "token-malformed"
        case .criticalHeader: "token-critical-header"
        case .wrongType: "token-wrong-type"
        case .unknownIssuer: "token-unknown-issuer"
        case .unknownKey: "token-unknown-key"
        case .unusableKey: "token-unusable-key"
        case .wrongAlgorithm: "token-wrong-algorithm"
        case .badSignature: "token-bad-signature"
        case .badClaim: "token-bad-claims"
        case .wrongAudience: "token-wrong-audience"
        case .expired: "token-expired"
        case .notYetValid: "token-not-yet-valid"
        case .livesTooLong: "token-lives-too-long"
        case .foreignApp: "token-foreign-app"
        case .foreignScope: "token-foreign-scope"
        case .wildcardApp: "token-wildcard-app"
        case .denied: "token-denied"
        }
    }

    /// A sentence for the person who can fix it.
    package var message: String {
        switch self {
        case .tooLarge: "The token is longer than \(JWS.tokenBytesMax) bytes."
        case .malformed: "The token is not a signed JWT in the compact form with alg and kid."
        case .criticalHeader: "The token's header has crit, and no critical extension is supported."
        case .wrongType: "The header's typ is not JWT."
        case .unknownIssuer: "The issuer (iss) is not configured here."
        case .unknownKey: "The issuer has no key with this kid."
        case .unusableKey:
            "The issuer's key with this kid cannot be used here: \(VerificationKey.kinds), for "
                + "signatures, is accepted."
        case .wrongAlgorithm: "The header's alg does not match the key that its kid names."
        case .badSignature: "The signature does not verify."
        case .badClaim(let claim):
            "The claim \(claim.rawValue) is missing or malformed: it must \(claim.form)."
        case .wrongAudience: "The audience (aud) is not this gateway's URL."
        case .expired: "The token has expired (exp)."
        case .notYetValid(let claim):
            "The token is not valid yet: \(claim.rawValue) is in the future."
        case .livesTooLong:
            "A token with the scope client may not live this long: exp is too far after iat."
        case .foreignApp: "The issuer is not configured for this app."
        case .foreignScope: "The issuer may not grant one of the scopes."
        case .wildcardApp:
            "Only a token with the scope operator or operator:read may name every app (*)."
        case .denied: "An operator has denied this token, or its subject; get another one."
        }
    }

    /// Whether the response is 401 `invalid_token` (RFC 6750 section 3.1); otherwise the token is
    /// genuine but claims a right its issuer cannot grant, which is 403 `insufficient_scope`.
    package var isInvalidToken: Bool {
        switch self {
        case .foreignApp, .foreignScope, .wildcardApp: false
        default: true
        }
    }

    /// Whether the rejection required a signature check and stays valid as long as the policy does.
    var isLastingAndCostly: Bool {
        switch self {
        case .badSignature, .badClaim, .wrongAudience, .foreignApp, .foreignScope, .wildcardApp:
            true
        // Found before the signature is verified.
        case .tooLarge, .malformed, .criticalHeader, .wrongType, .unknownIssuer, .unknownKey,
            .unusableKey, .wrongAlgorithm:
            false
        // Depends on the time; without `iat` the lifetime does, too.
        case .expired, .notYetValid, .livesTooLong, .denied: false
        }
    }
}

extension TokenRejection: CaseIterable {
    /// Every rejection; one claim stands for all where the rejection names one.
    package static let allCases: [TokenRejection] = [
        .tooLarge, .malformed, .criticalHeader, .wrongType, .unknownIssuer, .unknownKey,
        .unusableKey, .wrongAlgorithm, .badSignature, .badClaim(.iss), .wrongAudience, .expired,
        .notYetValid(.nbf), .livesTooLong, .foreignApp, .foreignScope, .wildcardApp, .denied,
    ]
}
