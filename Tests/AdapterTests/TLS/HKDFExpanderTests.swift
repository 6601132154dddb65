import COpenSSL
import Glibc
import Testing

@testable import GatewayTLS

/// Derivations must equal OpenSSL's, or fail.
@Suite struct HKDFExpanderTests {
    private static let labels: [StaticString] = ["key", "iv", "traffic upd", "a", "exp master"]

    /// Returns the derivation by OpenSSL's own TLS13-KDF (EVP_KDF-TLS13_KDF(7)).
    private func derivedByOpenSSL(
        _ secret: [UInt8], _ label: StaticString, _ hash: RecordSuite.Hash, count: Int
    ) throws -> [UInt8] {
        let kdf = try #require(EVP_KDF_fetch(nil, "TLS13-KDF", nil))
        defer { EVP_KDF_free(kdf) }
        let context = try #require(EVP_KDF_CTX_new(kdf))
        defer { EVP_KDF_CTX_free(context) }
        var mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY
        var (secret, prefix) = (secret, Array("tls13 ".utf8))
        var name = "\(hash.name)".utf8CString.map { $0 }
        var label = label.withUTF8Buffer { Array($0) }
        var output = [UInt8](repeating: 0, count: count)
        // The parameters keep pointers to their keys.
        let keys = ["mode", "digest", "key", "prefix", "label"].map { (key: String) in strdup(key) }
        defer { for key in keys { free(key) } }
        // Sound: the parameters point at memory that lives until the call returns.
        let result = withUnsafeMutablePointer(to: &mode) { mode in
            name.withUnsafeMutableBufferPointer { name in
                secret.withUnsafeMutableBytes { secret in
                    prefix.withUnsafeMutableBytes { prefix in
                        label.withUnsafeMutableBytes { label in
                            let parameters = [
                                OSSL_PARAM_construct_int(keys[0], mode),
                                OSSL_PARAM_construct_utf8_string(keys[1], name.baseAddress, 0),
                                OSSL_PARAM_construct_octet_string(
                                    keys[2], secret.baseAddress, secret.count),
                                OSSL_PARAM_construct_octet_string(
                                    keys[3], prefix.baseAddress, prefix.count),
                                OSSL_PARAM_construct_octet_string(
                                    keys[4], label.baseAddress, label.count),
                                OSSL_PARAM_construct_end(),
                            ]
                            return EVP_KDF_derive(context, &output, count, parameters)
                        }
                    }
                }
            }
        }
        try #require(result == 1)
        return output
    }

    private func expanded(
        _ expander: HKDFExpander, _ secret: [UInt8], _ label: StaticString,
        _ hash: RecordSuite.Hash, count: Int
    ) -> [UInt8]? {
        var output = [UInt8](repeating: 0, count: count)
        let isDerived = secret.withUnsafeBytes { secret in
            output.withUnsafeMutableBytes {
                expander.expand(secret, label: label, hash: hash, into: $0[...])
            }
        }
        return isDerived ? output : nil
    }

    /// Every length for each label, each time with another secret.
    @Test(arguments: RecordSuite.Hash.allCases) func itDerivesWhatOpenSSLDerives(
        hash: RecordSuite.Hash
    ) throws {
        let expander = try #require(HKDFExpander())
        for label in Self.labels {
            for count in 1...hash.bytes {
                let secret = pattern(hash.bytes, seed: count)
                #expect(
                    try expanded(expander, secret, label, hash, count: count)
                        == derivedByOpenSSL(secret, label, hash, count: count))
            }
        }
    }

    @Test(arguments: RecordSuite.Hash.allCases) func moreThanABlockIsRefused(
        hash: RecordSuite.Hash
    ) throws {
        let expander = try #require(HKDFExpander())
        for count in [hash.bytes + 1, 64, 300] {
            #expect(expanded(expander, pattern(32), "key", hash, count: count) == nil)
        }
    }
}
