import COpenSSL

/// Derives secrets and keys from a traffic secret.
protocol SecretExpanding {
    /// Fills `output` by HKDF-Expand-Label with an empty context (RFC 8446 section 7.1); returns
    /// false when that fails.
    func expand(
        _ secret: UnsafeRawBufferPointer, label: StaticString, hash: RecordSuite.Hash,
        into output: Slice<UnsafeMutableRawBufferPointer>
    ) -> Bool
}

/// HKDF-Expand-Label by OpenSSL's HMAC. Used by one thread.
///
/// HMAC and hashes are looked up once: OpenSSL's own TLS13-KDF looks the hash up by name for each
/// derivation, which takes longer than computing it.
final class HKDFExpander: SecretExpanding {
    private static let prefix: StaticString = "tls13 "
    private static let zeros = [UInt8](repeating: 0, count: TrafficKeys.secretBytesMax)

    /// HMAC with each hash, in the order of `RecordSuite.Hash`.
    private let contexts: [OpaquePointer]

    /// Returns `nil` when OpenSSL has no memory, no HMAC or no hash.
    init?() {
        guard let hmac = EVP_MAC_fetch(nil, "HMAC", nil) else { return nil }
        defer { EVP_MAC_free(hmac) }
        var contexts: [OpaquePointer] = []
        for hash in RecordSuite.Hash.allCases {
            guard let context = EVP_MAC_CTX_new(hmac) else { break }
            contexts.append(context)
            // Sound: OpenSSL only reads the name.
            let name = UnsafeMutableRawPointer(mutating: hash.name.utf8Start)
                .assumingMemoryBound(to: CChar.self)
            // OpenSSL reads the parameters before the call returns.
            let isSet = OSSL_MAC_PARAM_DIGEST.withCString { key in
                EVP_MAC_CTX_set_params(
                    context,
                    [
                        OSSL_PARAM_construct_utf8_string(key, name, 0),
                        OSSL_PARAM_construct_end(),
                    ])
            }
            guard isSet == 1 else { break }
            if hash == RecordSuite.Hash.allCases.last {
                self.contexts = contexts
                return
            }
        }
        for context in contexts { EVP_MAC_CTX_free(context) }
        return nil
    }

    deinit { for context in contexts { EVP_MAC_CTX_free(context) } }

    /// Also fails for more bytes than one block of the hash; TLS never asks for more.
    func expand(
        _ secret: UnsafeRawBufferPointer, label: StaticString, hash: RecordSuite.Hash,
        into output: Slice<UnsafeMutableRawBufferPointer>
    ) -> Bool {
        guard output.count <= hash.bytes else { return false }
        // The structure HkdfLabel, then the number of the block (RFC 5869 section 2.3).
        var info: [UInt8] = []
        info.reserveCapacity(32)
        info.append(0)
        info.append(UInt8(output.count))
        info.append(UInt8(Self.prefix.utf8CodeUnitCount + label.utf8CodeUnitCount))
        Self.prefix.withUTF8Buffer { info.append(contentsOf: $0) }
        label.withUTF8Buffer { info.append(contentsOf: $0) }
        info.append(0)
        info.append(1)
        return hmac(hash, key: secret, message: info, into: output)
    }

    private func hmac(
        _ hash: RecordSuite.Hash, key: UnsafeRawBufferPointer, message: [UInt8],
        into output: Slice<UnsafeMutableRawBufferPointer>
    ) -> Bool {
        let context = contexts[hash.rawValue]
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: hash.bytes) { whole in
            // Replace the context's key, so that it does not keep the secret.
            defer {
                OPENSSL_cleanse(whole.baseAddress, whole.count)
                EVP_MAC_init(context, Self.zeros, hash.bytes, nil)
            }
            var count = 0
            guard let start = whole.baseAddress,
                EVP_MAC_init(
                    context, key.baseAddress?.assumingMemoryBound(to: UInt8.self), key.count, nil)
                    == 1,
                EVP_MAC_update(context, message, message.count) == 1,
                EVP_MAC_final(context, start, &count, whole.count) == 1, count == whole.count
            else {
                ERR_clear_error()
                return false
            }
            UnsafeMutableRawBufferPointer(rebasing: output)
                .copyMemory(from: UnsafeRawBufferPointer(start: start, count: output.count))
            return true
        }
    }
}
