import GatewaySigning
import WidgetModel

/// The two environments of APNs.
package enum SimulatedEnvironment: String, Sendable, CaseIterable {
    case production
    case sandbox
}

/// A team's key for provider tokens.
package struct ProviderKey: Sendable {
    /// The key id (`kid` of its tokens).
    package let id: String
    /// The team (`iss` of its tokens).
    package let team: String
    /// The environments that the key is valid in.
    package let environments: Set<SimulatedEnvironment>
    private let keys: JWKSet

    /// Creates a P-256 key. Throws `SigningError` for another algorithm, and for an id that is not
    /// a valid `kid`.
    package init(
        id: String, team: String, key: VerificationKey,
        environments: Set<SimulatedEnvironment> = Set(SimulatedEnvironment.allCases)
    ) throws(SigningError) {
        guard key.algorithms == [.es256] else {
            throw SigningError(.keyUnsupported, "APNs takes tokens of P-256 keys alone")
        }
        var jwk = key.jwk
        jwk["kid"] = .string(id)
        keys = JWKSet([try VerificationKey(jwk: jwk)])
        self.id = id
        self.team = team
        self.environments = environments
    }

    /// Returns the claims of a token that this key signed; `nil` for any other.
    fileprivate func claims(_ token: JWS) -> JSONObject? {
        guard let payload = try? token.verifiedPayload(by: keys, as: .token) else { return nil }
        return try? JSONValue(parsing: payload).objectValue
    }
}

/// Verifies provider tokens, each only once.
package struct ProviderTokens: Sendable {
    /// The number of cached results after which the cache is cleared.
    static let rememberedMax = 10_000
    /// The longest time that `iat` may be in the future, seconds.
    static let aheadMax: Int64 = 60

    /// A token with a valid signature.
    package struct Token: Sendable, Hashable {
        package let keyID: String
        package let team: String
        /// The `iat`, seconds since 1970.
        package let issuedAt: Int64
    }

    private let keys: [String: ProviderKey]
    private let environment: SimulatedEnvironment
    private let ageMax: Int64
    private var remembered: [String: Result<Token, Rejection>] = [:]
    /// The distinct tokens with valid signatures, oldest first; limited like the cache.
    private(set) var valid: [Token] = []

    /// The reason why a token is rejected.
    struct Rejection: Error, Hashable {
        let reason: APNsReason
    }

    /// `ageMax` is the lifetime of a token after `iat`, in seconds.
    init(_ keys: [ProviderKey], environment: SimulatedEnvironment, ageMax: Int64) {
        self.keys = Dictionary(keys.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        self.environment = environment
        self.ageMax = ageMax
    }

    /// Returns the token in an `authorization` field if it is valid at `wall`, in seconds since
    /// 1970.
    mutating func token(_ authorization: String, wall: Int64) -> Result<Token, Rejection> {
        let known = remembered[authorization]
        let found = known ?? read(authorization)
        if known == nil {
            if remembered.count >= Self.rememberedMax { remembered = [:] }
            remembered[authorization] = found
            if case .success(let token) = found, valid.count < Self.rememberedMax {
                valid.append(token)
            }
        }
        guard case .success(let token) = found else { return found }
        let (age, overflow) = wall.subtractingReportingOverflow(token.issuedAt)
        if overflow || age < -Self.aheadMax {
            return .failure(Rejection(reason: .invalidProviderToken))
        }
        return age > ageMax ? .failure(Rejection(reason: .expiredProviderToken)) : found
    }

    private func read(_ authorization: String) -> Result<Token, Rejection> {
        let words = authorization.split(separator: " ", omittingEmptySubsequences: true)
        guard words.count == 2, words[0].lowercased() == "bearer" else {
            return .failure(Rejection(reason: .missingProviderToken))
        }
        let invalid = Result<Token, Rejection>.failure(Rejection(reason: .invalidProviderToken))
        guard
            let jws = try? JWS(parsing: Array(words[1].utf8), bytesMax: JWS.tokenBytesMax),
            let key = keys[jws.kid], let claims = key.claims(jws),
            claims["iss"]?.stringValue == key.team,
            let issuedAt = claims["iat"]?.integerValue
        else { return invalid }
        guard key.environments.contains(environment) else {
            return .failure(Rejection(reason: .badEnvironmentKeyIDInToken))
        }
        return .success(Token(keyID: key.id, team: key.team, issuedAt: issuedAt))
    }
}
