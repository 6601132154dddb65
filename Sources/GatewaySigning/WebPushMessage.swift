import COpenSSL
import WidgetModel

/// The content of a Web Push message, encrypted for one subscription (RFC 8291).
package enum WebPushMessage {
    /// The longest content, bytes (RFC 8291 section 4).
    package static let contentBytesMax = 3_993
    /// The record size that the header states; the only record is shorter.
    private static let recordBytes: UInt32 = 4_096
    /// Contents are padded to a multiple of this, so that their length says little.
    private static let paddedBytes = 512
    private static let saltBytes = 16
    private static let tagBytes = 16

    /// Returns whether bytes are an uncompressed point of P-256.
    package static func isPublicKey(_ bytes: [UInt8]) -> Bool { publicKey(bytes) != nil }

    private static func publicKey(_ bytes: [UInt8]) -> EVPKey? {
        guard bytes.count == 1 + 2 * KeyKind.coordinateBytes, bytes.first == 4 else { return nil }
        let (x, y) = (bytes[1...KeyKind.coordinateBytes], bytes.suffix(KeyKind.coordinateBytes))
        return EVPKey.publicKey(.p256, [Array(x), Array(y)])
    }

    /// Encrypts `content` for a subscription, with a key and a salt of its own, and padded.
    ///
    /// - Parameters:
    ///   - p256dh: The subscription's public key, an uncompressed point.
    ///   - auth: The subscription's secret.
    /// - Throws: ``SigningError``: `keyUnsupported` for a key that is no point of the curve,
    ///   `limitExceeded` for content that is too long, `cryptoFailed`.
    package static func encrypt(
        _ content: [UInt8], p256dh: [UInt8], auth: [UInt8]
    ) throws(SigningError) -> [UInt8] {
        let padding = paddedBytes - content.count % paddedBytes
        return try encrypt(
            content, padding: min(padding, max(0, contentBytesMax - content.count)),
            p256dh: p256dh, auth: auth, key: try SigningKey(generating: .es256),
            salt: try secureRandom(count: saltBytes))
    }

    /// Encrypts as above with a given key, salt and number of padding bytes.
    package static func encrypt(
        _ content: [UInt8], padding: Int, p256dh: [UInt8], auth: [UInt8], key: SigningKey,
        salt: [UInt8]
    ) throws(SigningError) -> [UInt8] {
        guard content.count + padding <= contentBytesMax else {
            throw SigningError(.limitExceeded, "a push has at most \(contentBytesMax) bytes")
        }
        guard let other = publicKey(p256dh) else {
            throw SigningError(.keyUnsupported, "a subscription's key is no point of P-256")
        }
        guard let shared = key.sharedSecret(with: other) else {
            throw SigningError(.cryptoFailed, "no secret could be agreed on")
        }
        let use = Array("WebPush: info\0".utf8) + p256dh + key.uncompressedPoint
        let secret = try derivedKey(from: shared, salt: auth, for: use, count: 32)
        return try aes128gcm(
            content, padding: padding, secret: secret, salt: salt, keyID: key.uncompressedPoint)
    }

    /// Encrypts `content`, and as many zeros as `padding` says, as a single record of the content
    /// coding `aes128gcm` (RFC 8188). Throws ``SigningError`` (`cryptoFailed`).
    package static func aes128gcm(
        _ content: [UInt8], padding: Int, secret: [UInt8], salt: [UInt8], keyID: [UInt8]
    ) throws(SigningError) -> [UInt8] {
        func derived(_ use: String, _ count: Int) throws(SigningError) -> [UInt8] {
            try derivedKey(
                from: secret, salt: salt, for: Array("Content-Encoding: \(use)\0".utf8),
                count: count)
        }
        let key = try derived("aes128gcm", 16)
        let nonce = try derived("nonce", 12)
        var record = content
        // This byte marks the last record.
        record.append(2)
        record.append(contentsOf: repeatElement(0, count: padding))
        var message = salt
        for shift in [24, 16, 8, 0] {
            message.append(UInt8(truncatingIfNeeded: recordBytes >> shift))
        }
        message.append(UInt8(keyID.count))
        message += keyID
        message += try sealed(record, key: key, nonce: nonce)
        return message
    }

    /// Encrypts by AES-128-GCM; the tag follows.
    private static func sealed(
        _ bytes: [UInt8], key: [UInt8], nonce: [UInt8]
    ) throws(SigningError) -> [UInt8] {
        var sealed = [UInt8](repeating: 0, count: bytes.count + tagBytes)
        let isDone = sealed.withUnsafeMutableBufferPointer { output -> Bool in
            guard let start = output.baseAddress, let context = EVP_CIPHER_CTX_new() else {
                return false
            }
            // Freeing overwrites the key schedule.
            defer { EVP_CIPHER_CTX_free(context) }
            // Sound: `output` has room for as many bytes as there are, and the tag.
            var count: Int32 = 0
            return EVP_EncryptInit_ex(context, EVP_aes_128_gcm(), nil, key, nonce) == 1
                && EVP_EncryptUpdate(context, start, &count, bytes, Int32(bytes.count)) == 1
                && EVP_EncryptFinal_ex(context, start + bytes.count, &count) == 1
                && EVP_CIPHER_CTX_ctrl(
                    context, EVP_CTRL_AEAD_GET_TAG, Int32(tagBytes), start + bytes.count) == 1
        }
        guard isDone else {
            ERR_clear_error()
            throw SigningError(.cryptoFailed, "the push could not be encrypted")
        }
        return sealed
    }
}

extension SigningKey {
    /// The public P-256 key as an uncompressed point.
    var uncompressedPoint: [UInt8] { [4] + publicBytes }

    /// The public key of a sender of Web Push: a browser's `applicationServerKey`, base64url.
    package var applicationServerKey: String { Base64.url.string(uncompressedPoint) }

    /// Returns a token that identifies the sender to a browser's push service (VAPID, RFC 8292).
    ///
    /// - Parameters:
    ///   - audience: The origin of the service.
    ///   - subject: A `mailto:` or `https:` URL of the sender's operator.
    ///   - expires: The time in seconds since 1970, at most 24 hours ahead.
    /// - Throws: ``SigningError``: `keyUnsupported` for a key that is not P-256, `cryptoFailed`.
    package func vapidToken(
        audience: String, subject: String, expires: Int64
    ) throws(SigningError) -> String {
        guard algorithm == .es256 else {
            throw SigningError(.keyUnsupported, "Web Push supports P-256 keys only")
        }
        let claims: JSONValue = [
            "aud": .string(audience), "exp": .integer(expires), "sub": .string(subject),
        ]
        let signer = JWSSigner(key: self, type: "JWT")
        return String(decoding: try signer.sign(payload: claims.serialized), as: UTF8.self)
    }
}
