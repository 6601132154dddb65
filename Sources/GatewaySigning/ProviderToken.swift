import WidgetModel

extension SigningKey {
    /// Returns a provider token for Apple's push service, signed with a team's P-256 key.
    ///
    /// - Parameters:
    ///   - keyID: The key id that Apple assigned.
    ///   - team: The id of the team.
    ///   - issuedAt: The time in seconds since 1970. Apple rejects a token after an hour.
    /// - Throws: ``SigningError``: `keyUnsupported` for a key that is not P-256, `cryptoFailed`.
    package func providerToken(
        keyID: String, team: String, issuedAt: Int64
    ) throws(SigningError) -> String {
        guard algorithm == .es256 else {
            throw SigningError(.keyUnsupported, "APNs supports P-256 keys only")
        }
        let claims: JSONValue = ["iss": .string(team), "iat": .integer(issuedAt)]
        let signer = JWSSigner(key: self, type: nil, kid: keyID)
        return String(decoding: try signer.sign(payload: claims.serialized), as: UTF8.self)
    }

    /// Returns whether this key signed a provider token. A stored token with the key's name may
    /// have been signed by a previous key of that name.
    package func hasSigned(providerToken text: String) -> Bool {
        guard let dot = text.utf8.lastIndex(of: UInt8(ascii: ".")),
            let signature = Base64.url.decode(text.utf8[text.utf8.index(after: dot)...])
        else { return false }
        return publicKey.verify(signature, over: text.utf8[..<dot])
    }
}
