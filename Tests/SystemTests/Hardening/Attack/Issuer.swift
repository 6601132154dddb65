import Foundation
import GatewaySigning
import WidgetModel

/// Mints tokens with any claims, as an issuer that the daemon trusts or as another one.
struct Issuer: Sendable {
    static let backendScopes = "catalog:write changes:write clients:write operator tokens:issue"

    let iss: String
    let aud: String
    let key: SigningKey
    let kid: String

    /// An issuer with these claims and this key.
    init(iss: String, aud: String, key: SigningKey) {
        self.iss = iss
        self.aud = aud
        self.key = key
        kid = key.kid
    }

    /// The issuer that minted `token`; its private key is in a directory, in a file named after it.
    init(likeThatOf token: String, keysIn directory: String) throws {
        let parts = token.split(separator: ".").map { Base64.url.decode(Array($0.utf8)) ?? [] }
        let header = try JSONValue(parsing: parts.first ?? []).objectValue
        let claims = try JSONValue(parsing: parts.dropFirst().first ?? []).objectValue
        kid = header?["kid"]?.stringValue ?? ""
        iss = claims?["iss"]?.stringValue ?? ""
        aud = claims?["aud"]?.stringValue ?? ""
        key = try SigningKey(contentsOf: "\(directory)/\(kid).pem")
    }

    static var now: Int64 { Int64(Date().timeIntervalSince1970) }

    /// Returns valid claims; `others` replace single ones or, with `null`, remove them.
    func claims(
        app: String = Target.app, scope: String, sub: String = "backend",
        attributes: JSONValue? = nil, _ others: JSONObject = [:]
    ) -> JSONValue {
        var claims: JSONObject = [
            "iss": .string(iss), "aud": .string(aud), "app": .string(app), "sub": .string(sub),
            "scope": .string(scope), "iat": .integer(Self.now), "exp": .integer(Self.now + 3600),
        ]
        if let attributes { claims["attributes"] = attributes }
        for member in others.members {
            claims[member.name] = member.value == .null ? JSONValue?.none : member.value
        }
        return .object(claims)
    }

    /// Returns a token with valid claims, except for `others`.
    func token(
        app: String = Target.app, scope: String, sub: String = "backend",
        attributes: JSONValue? = nil, _ others: JSONObject = [:]
    ) throws -> String {
        let claims = claims(app: app, scope: scope, sub: sub, attributes: attributes, others)
        let signer = JWSSigner(key: key, type: "JWT", kid: kid)
        return String(decoding: try signer.sign(payload: claims.serialized), as: UTF8.self)
    }

    func token(header: JSONValue, claims: JSONValue) throws -> String {
        let input =
            Base64.url.encode(header.serialized) + [UInt8(ascii: ".")]
            + Base64.url.encode(claims.serialized)
        return String(
            decoding: input + [UInt8(ascii: ".")] + Base64.url.encode(try key.sign(input)),
            as: UTF8.self)
    }
}
