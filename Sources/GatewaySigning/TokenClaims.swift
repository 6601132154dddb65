import WidgetModel

/// The claims of a token, read strictly: a claim of another type than RFC 7519 section 4 or the
/// gateway's own rules require causes a rejection, rather than counting as absent.
struct TokenClaims {
    let iss: String
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
        func name(_ claim: String) throws(TokenRejection) -> String {
            guard let text = claims[claim]?.stringValue, !text.isEmpty,
                text.utf8.count <= limits.stringBytesMax
            else { throw .badClaims }
            return text
        }
        guard let iss = Self.issuer(of: claims), let scope = claims["scope"]?.stringValue,
            let exp = try Self.time(claims["exp"])
        else { throw .badClaims }
        self.iss = iss
        sub = try name("sub")
        app = try name("app")
        audiences = try Self.audiences(claims["aud"])
        scopes = Scope.known(in: scope)
        self.exp = exp
        nbf = try Self.time(claims["nbf"])
        iat = try Self.time(claims["iat"])
        switch claims["jti"] {
        case nil: jti = nil
        case .string(let text)?: jti = text.utf8.count <= limits.stringBytesMax ? text : nil
        default: throw .badClaims
        }
        if let attributes = claims["attributes"] {
            var faults = Faults()
            self.attributes = readAttributes(
                attributes, at: "attributes", limits: limits, &faults)
            guard faults.isEmpty else { throw .badClaims }
        } else {
            attributes = [:]
        }
    }

    /// Reads one string or several (RFC 7519 section 4.1.3).
    private static func audiences(_ value: JSONValue?) throws(TokenRejection) -> [String] {
        switch value {
        case .string(let audience)?: return [audience]
        case .array(let elements)?:
            let audiences = elements.compactMap(\.stringValue)
            guard audiences.count == elements.count else { throw .badClaims }
            return audiences
        default: throw .badClaims
        }
    }

    /// Reads seconds since 1970, ignoring a fraction (RFC 7519 section 2, NumericDate). Rejects
    /// years beyond 9999, so that arithmetic cannot overflow.
    private static func time(_ value: JSONValue?) throws(TokenRejection) -> Int64? {
        let seconds: Int64? =
            switch value {
            case nil: nil
            case .integer(let seconds)?: seconds
            case .number(let seconds)?: Int64(exactly: seconds.rounded(.down))
            default: nil
            }
        guard value == nil || seconds.map({ (0...253_402_300_799).contains($0) }) == true else {
            throw .badClaims
        }
        return seconds
    }
}
