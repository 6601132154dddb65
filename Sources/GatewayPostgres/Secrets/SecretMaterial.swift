import COpenSSL
import GatewaySigning

/// Makes new secrets.
package enum SecretMaterial {
    /// The bytes of a ticket key: its name, and the keys of cipher and MAC.
    private static let ticketBytes = 80
    private static let hashBytes = 16

    /// Returns a new secret of a kind: the PEM text of a private key, or random bytes.
    ///
    /// - Throws: `SecretError.cryptoFailed` without entropy.
    package static func secret(of kind: SecretKind) throws(SecretError) -> SecretBytes {
        let secret =
            switch kind {
            case .signing, .webhook, .issuer: privateKey()
            case .ticket: SecretBytes(randomCount: ticketBytes)
            case .keyHash:
                SecretBytes(randomCount: hashBytes)
            }
        guard let secret else { throw .cryptoFailed }
        return secret
    }

    /// Returns a new secret for a row with a random name, wrapped under `key`.
    ///
    /// - Throws: `SecretError.cryptoFailed`.
    package static func row(
        of kind: SecretKind, under key: FleetKey
    ) throws(SecretError) -> SecretRound.NewSecret {
        guard let bytes = try? secureRandom(count: 8) else { throw .cryptoFailed }
        let name = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        let wrapped = try key.wrap(try secret(of: kind), kind: kind.rawValue, name: name)
        return SecretRound.NewSecret(name: name, wrapped: wrapped)
    }

    private static func privateKey() -> SecretBytes? {
        guard var pem = try? SigningKey(generating: .edDSA).pem() else { return nil }
        defer { OPENSSL_cleanse(&pem, pem.count) }
        return SecretBytes(copying: pem)
    }
}
