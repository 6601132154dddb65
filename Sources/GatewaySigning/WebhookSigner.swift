import WidgetModel

/// Signs webhooks as Standard Webhooks 1.0 says, with Ed25519 (`v1a`).
///
/// During a key rotation there are two keys, and each signs: a receiver that knows either one
/// accepts the message.
package struct WebhookSigner: Sendable {
    /// The maximum number of keys that sign one message.
    package static let keysMax = 2
    /// The longest `webhook-id`, in bytes.
    package static let idBytesMax = 256

    private let keys: [SigningKey]

    /// Creates a signer with one key, or with the two of a rotation. Throws ``SigningError``:
    /// `limitExceeded` for another number of keys, `keyUnsupported` for one that is not Ed25519.
    package init(_ keys: [SigningKey]) throws(SigningError) {
        guard (1...Self.keysMax).contains(keys.count) else {
            throw SigningError(
                .limitExceeded, "a webhook is signed by one key or \(Self.keysMax)")
        }
        guard keys.allSatisfy({ $0.algorithm == .edDSA }) else {
            throw SigningError(.keyUnsupported, "webhooks are signed by Ed25519 keys only")
        }
        self.keys = keys
    }

    /// The public keys for receivers, one text each: `whpk_` and the key in base64.
    package var publicKeys: [String] {
        keys.map { "whpk_" + Base64.standard.string($0.publicBytes) }
    }

    /// Returns the header fields of a message. The body must be sent exactly as signed.
    ///
    /// - Parameters:
    ///   - id: The id of the message, the same for each delivery attempt. Visible ASCII without a
    ///     dot, 1...``idBytesMax`` bytes.
    ///   - timestamp: The time of this attempt, in seconds since 1970.
    /// - Throws: ``SigningError``: `documentMalformed` for an invalid id, `cryptoFailed` when
    ///   OpenSSL is out of memory.
    package func fields(
        id: String, timestamp: Int64, body: [UInt8]
    ) throws(SigningError) -> [(name: String, value: String)] {
        // With a dot, one message could be read as another with a longer body.
        let isPlain = id.utf8.allSatisfy {
            (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ".")
        }
        guard isPlain, (1...Self.idBytesMax).contains(id.utf8.count) else {
            throw SigningError(.documentMalformed, "a webhook's id is visible ASCII without dots")
        }
        let content = Array("\(id).\(timestamp).".utf8) + body
        var signatures: [String] = []
        for key in keys {
            signatures.append("v1a," + Base64.standard.string(try key.sign(content)))
        }
        return [
            ("webhook-id", id), ("webhook-timestamp", String(timestamp)),
            ("webhook-signature", signatures.joined(separator: " ")),
        ]
    }
}
