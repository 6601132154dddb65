import WidgetModel

/// A claim that the gateway reads.
package enum TokenClaim: String, Sendable, CaseIterable {
    case iss, sub, aud, app, scope, exp, nbf, iat, jti, attributes

    /// The accepted form, to follow "must".
    var form: String {
        switch self {
        case .iss, .sub, .app: "be a non-empty string of at most 256 bytes"
        case .aud: "be a string or an array of strings"
        case .scope: "be a string of names separated by spaces, or an array of names (also as scp)"
        case .exp, .nbf, .iat: "be a number of seconds since 1970"
        case .jti: "be a string"
        case .attributes: "be an object whose values are strings or arrays of strings"
        }
    }
}

/// The claims of a token, read strictly: a claim of another type than RFC 7519 section 4 or the
/// gateway's own rules require causes a rejection, rather than counting as absent.
struct TokenClaims {
    let sub: String
    let audiences: [String]
    let app: String
    let scopes: Set<Scope>
    let exp: Int64
    let nbf: Int64?
    let iat: Int64?
    let attributes: [String: [String]]
    /// The id of the token; also `nil` for one that is too long to be compared and stored.
    let jti: String?

    /// Returns only `iss`, which is read before the signature is verified, to select the keys to
    /// try.
    static func issuer(of claims: JSONObject) -> String? {
        claims["iss"]?.stringValue
    }

    init(_ claims: JSONObject, limits: Limits) throws(TokenRejection) {
        func name(_ claim: TokenClaim) throws(TokenRejection) -> String {
            guard let text = claims[claim.rawValue]?.stringValue, !text.isEmpty,
                text.utf8.count <= limits.stringBytesMax
            else { throw .badClaim(claim) }
            return text
        }
        guard Self.issuer(of: claims) != nil else { throw .badClaim(.iss) }
        guard let exp = try Self.time(.exp, of: claims) else { throw .badClaim(.exp) }
        sub = try name(.sub)
        app = try name(.app)
        audiences = try Self.texts(claims["aud"], of: .aud)
        // Some identity providers call it `scp`, and some of both write an array.
        scopes = try Self.texts(claims["scope"] ?? claims["scp"], of: .scope)
            .reduce(into: []) { $0.formUnion(Scope.known(in: $1)) }
        self.exp = exp
        nbf = try Self.time(.nbf, of: claims)
        iat = try Self.time(.iat, of: claims)
        switch claims["jti"] {
        case nil: jti = nil
        case .string(let text)?: jti = text.utf8.count <= limits.stringBytesMax ? text : nil
        default: throw .badClaim(.jti)
        }
        if let attributes = claims["attributes"] {
            var faults = Faults()
            self.attributes = readAttributes(
                attributes, at: "attributes", limits: limits, &faults)
            guard faults.isEmpty else { throw .badClaim(.attributes) }
        } else {
            attributes = [:]
        }
    }

    /// Reads one string or several (RFC 7519 section 4.1.3).
    private static func texts(
        _ value: JSONValue?, of claim: TokenClaim
    ) throws(TokenRejection) -> [String] {
        switch value {
        case .string(let text)?: return [text]
        case .array(let elements)?:
            let texts = elements.compactMap(\.stringValue)
            guard texts.count == elements.count else { throw .badClaim(claim) }
            return texts
        default: throw .badClaim(claim)
        }
    }

    /// Reads seconds since 1970, ignoring a fraction (RFC 7519 section 2, NumericDate). Rejects
    /// years beyond 9999, so that arithmetic cannot overflow.
    private static func time(
        _ claim: TokenClaim, of claims: JSONObject
    ) throws(TokenRejection) -> Int64? {
        let value = claims[claim.rawValue]
        let seconds: Int64? =
            switch value {
            case nil: nil
            case .integer(let seconds)?: seconds
            case .number(let seconds)?: Int64(exactly: seconds.rounded(.down))
            default: nil
            }
        guard value == nil || seconds.map({ (0...253_402_300_799).contains($0) }) == true else {
            throw .badClaim(claim)
        }
        return seconds
    }
}
