import COpenSSL

/// Conversions between the two encodings of a P-256 signature: DER for OpenSSL, and r and s
/// concatenated in a JWS (RFC 7518 section 3.4).
package enum ECDSASignature {
    /// Returns r and s of a DER signature, 32 bytes each with leading zeros; `nil` if it is
    /// malformed.
    package static func fixedWidth(der: [UInt8]) -> [UInt8]? {
        let parsed = der.withUnsafeBufferPointer { buffer in
            var start = buffer.baseAddress
            return d2i_ECDSA_SIG(nil, &start, buffer.count)
        }
        guard let parsed else { return nil }
        defer { ECDSA_SIG_free(parsed) }
        var bytes = [UInt8](repeating: 0, count: SigningAlgorithm.signatureBytes)
        let isWhole = bytes.withUnsafeMutableBufferPointer { buffer in
            guard let start = buffer.baseAddress else { return false }
            return BN_bn2binpad(ECDSA_SIG_get0_r(parsed), start, 32) == 32
                && BN_bn2binpad(ECDSA_SIG_get0_s(parsed), start + 32, 32) == 32
        }
        return isWhole ? bytes : nil
    }

    /// Returns the DER encoding of concatenated r and s; `nil` unless they are 64 bytes.
    package static func der(fixedWidth bytes: [UInt8]) -> [UInt8]? {
        guard bytes.count == SigningAlgorithm.signatureBytes else { return nil }
        var body = integer(bytes.prefix(32))
        body.append(contentsOf: integer(bytes.dropFirst(32)))
        // Two integers have at most 35 bytes each, so the short form of the length, up to 127,
        // suffices.
        guard body.count < 0x80 else { return nil }
        return [0x30, UInt8(body.count)] + body
    }

    /// Returns a positive DER INTEGER: without unnecessary leading zeros, but with one if the top
    /// bit is set.
    private static func integer(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var digits = Array(bytes.drop { $0 == 0 })
        if digits.first.map({ $0 >= 0x80 }) ?? true { digits.insert(0, at: 0) }
        return [0x02, UInt8(truncatingIfNeeded: digits.count)] + digits
    }
}
