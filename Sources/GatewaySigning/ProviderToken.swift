import WidgetModel

extension SigningKey {
    /// A provider token for Apple's push service, made with a team's P-256 key.
    ///
    /// - Parameters:
    ///   - keyID: The name Apple gave the key.
    ///   - team: The team's name.
    ///   - issuedAt: Seconds since 1970. Apple refuses a token an hour later.
    /// - Throws: ``SigningError``: `keyUnsupported` for a key that is not P-256, `cryptoFailed`.
    package func providerToken(
        keyID: String, team: String, issuedAt: Int64
    ) throws(SigningError) -> String {
        guard algorithm == .es256 else {
            throw SigningError(.keyUnsupported, "Apple's push service takes P-256 keys alone")
        }
        let header: JSONValue = ["alg": "ES256", "kid": .string(keyID)]
        let claims: JSONValue = ["iss": .string(team), "iat": .integer(issuedAt)]
        var text = Base64URL.encode(header.serialized)
        text.append(UInt8(ascii: "."))
        Base64URL.append(claims.serialized, to: &text)
        let signature = try sign(text)
        text.append(UInt8(ascii: "."))
        Base64URL.append(signature, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    /// Whether a provider token was signed with this key: one that is kept by the key's name may
    /// be of another file that had the name before.
    package func hasSigned(providerToken text: String) -> Bool {
        guard let dot = text.utf8.lastIndex(of: UInt8(ascii: ".")),
            let signature = Base64URL.decode(text.utf8[text.utf8.index(after: dot)...])
        else { return false }
        return publicKey.verify(signature, over: text.utf8[..<dot])
    }
}
