import COpenSSL
import Testing

@testable import GatewayTLS

/// The key schedule must make what OpenSSL's own makes, or nothing.
@Suite struct SecretScheduleTests {
    /// Parameters of a step, as OpenSSL hands them on; memory of their own until `end`.
    private final class Parameters {
        private(set) var all: [OSSL_PARAM] = []
        private var memory: [UnsafeMutableRawPointer] = []

        deinit { for place in memory { place.deallocate() } }

        private func kept(_ bytes: [UInt8]) -> UnsafeMutableRawPointer {
            let place = UnsafeMutableRawPointer.allocate(
                byteCount: max(1, bytes.count), alignment: 8)
            place.copyMemory(from: bytes, byteCount: bytes.count)
            memory.append(place)
            return place
        }

        private func name(_ text: String) -> UnsafeMutablePointer<CChar> {
            kept(Array(text.utf8) + [0]).assumingMemoryBound(to: CChar.self)
        }

        func add(_ key: String, _ bytes: [UInt8]) {
            all.append(OSSL_PARAM_construct_octet_string(name(key), kept(bytes), bytes.count))
        }

        func add(_ key: String, text: String) {
            all.append(OSSL_PARAM_construct_utf8_string(name(key), name(text), 0))
        }

        func add(_ key: String, number: Int32) {
            let bytes = withUnsafeBytes(of: number) { Array($0) }
            all.append(
                OSSL_PARAM_construct_int(
                    name(key), kept(bytes).assumingMemoryBound(to: Int32.self)))
        }

        func end() { all.append(OSSL_PARAM_construct_end()) }
    }

    /// A step: an expansion with or without a context, or an extraction with or without a secret and
    /// a salt.
    private enum Shape: CaseIterable {
        case expansion, expansionOfContext, beginning, saltOnly, secretOnly, both

        var isExtraction: Bool { self != .expansion && self != .expansionOfContext }
        var hasKey: Bool { self != .beginning && self != .saltOnly }
        var hasSalt: Bool { self == .saltOnly || self == .both }
    }

    private func step(
        _ hash: SecretSchedule.Hash, _ shape: Shape, named name: String, label: Int
    ) -> Parameters {
        let parameters = Parameters()
        parameters.add(
            "mode",
            number: shape.isExtraction
                ? EVP_KDF_HKDF_MODE_EXTRACT_ONLY : EVP_KDF_HKDF_MODE_EXPAND_ONLY)
        parameters.add("digest", text: name)
        if shape.hasKey { parameters.add("key", pattern(hash.bytes, seed: label)) }
        if shape.hasSalt { parameters.add("salt", pattern(hash.bytes, seed: label + 1)) }
        parameters.add("prefix", Array("tls13 ".utf8))
        parameters.add("label", pattern(label, seed: label + 2))
        if shape == .expansionOfContext {
            parameters.add("data", pattern(hash.bytes, seed: label + 3))
        }
        parameters.end()
        return parameters
    }

    /// Every shape, label and length that may be, with other secrets each time.
    @Test(arguments: SecretSchedule.Hash.allCases) func itMakesWhatOpenSSLMakes(
        hash: SecretSchedule.Hash
    ) throws {
        let schedule = try #require(SecretSchedule())
        let kdf = try #require(EVP_KDF_fetch(nil, "TLS13-KDF", "provider=default"))
        defer { EVP_KDF_free(kdf) }
        let names = hash == .sha256 ? ["SHA256", "SHA2-256"] : ["SHA384", "SHA2-384"]
        for shape in Shape.allCases {
            for label in 1...40 {
                let parameters = step(hash, shape, named: names[label % 2], label: label)
                for count in shape.isExtraction ? [hash.bytes] : [1, 12, 16, 32, hash.bytes] {
                    var expected = [UInt8](repeating: 0, count: count)
                    let context = try #require(EVP_KDF_CTX_new(kdf))
                    defer { EVP_KDF_CTX_free(context) }
                    try #require(EVP_KDF_derive(context, &expected, count, parameters.all) == 1)
                    let step = try #require(SecretSchedule.Step(parameters.all))
                    var made = [UInt8](repeating: 0, count: count)
                    #expect(made.withUnsafeMutableBytes { schedule.take(step, to: $0) })
                    #expect(made == expected)
                }
            }
        }
    }

    /// What is not known is left to OpenSSL.
    @Test(arguments: [
        "mode missing", "mode both", "mode text", "digest missing", "digest other", "key missing",
        "prefix missing", "label missing", "salt beside", "other",
    ]) func anythingElseIsLeftToOpenSSL(what: String) {
        let parameters = Parameters()
        switch what {
        case "mode missing": break
        case "mode both":
            parameters.add("mode", number: EVP_KDF_HKDF_MODE_EXTRACT_AND_EXPAND)
        case "mode text": parameters.add("mode", text: "EXPAND_ONLY")
        default: parameters.add("mode", number: EVP_KDF_HKDF_MODE_EXPAND_ONLY)
        }
        if what != "digest missing" {
            parameters.add("digest", text: what == "digest other" ? "SHA512" : "SHA256")
        }
        if what != "key missing" { parameters.add("key", pattern(32)) }
        if what != "prefix missing" { parameters.add("prefix", Array("tls13 ".utf8)) }
        if what != "label missing" { parameters.add("label", Array("key".utf8)) }
        if what == "salt beside" { parameters.add("salt", pattern(32)) }
        if what == "other" { parameters.add("properties", text: "fips=yes") }
        parameters.end()
        #expect(SecretSchedule.Step(parameters.all) == nil)
    }

    @Test func moreThanABlockIsLeftToOpenSSL() throws {
        let schedule = try #require(SecretSchedule())
        let secret = pattern(32)
        secret.withUnsafeBytes { secret in
            var step = SecretSchedule.Step(
                hash: .sha256, secret: secret, prefix: secret, label: secret)
            for count in [33, 48, 64] {
                var output = [UInt8](repeating: 0, count: count)
                #expect(!output.withUnsafeMutableBytes { schedule.take(step, to: $0) })
                step.isExtraction.toggle()
                #expect(!output.withUnsafeMutableBytes { schedule.take(step, to: $0) })
                step.isExtraction.toggle()
            }
            pattern(250).withUnsafeBytes { long in
                step.label = long
                var output = [UInt8](repeating: 0, count: 32)
                #expect(!output.withUnsafeMutableBytes { schedule.take(step, to: $0) })
            }
        }
    }
}
