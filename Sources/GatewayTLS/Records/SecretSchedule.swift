import COpenSSL
import Glibc

/// The steps of TLS 1.3's key schedule (RFC 8446 section 7.1) by OpenSSL's HMAC. Used by one thread.
///
/// OpenSSL's own look HMAC and hash up by name each time, which takes longer than to compute them; a
/// handshake has twenty steps. These look them up once.
final class SecretSchedule {
    /// The hash of a cipher suite.
    enum Hash: Int, CaseIterable, Sendable {
        case sha256
        case sha384

        /// How long what it makes is.
        var bytes: Int { self == .sha256 ? 32 : 48 }

        /// As OpenSSL names it.
        var name: StaticString { self == .sha256 ? "SHA256" : "SHA384" }
    }

    /// What is to be made of what: HKDF-Expand-Label, or what comes before HKDF-Extract and that.
    struct Step {
        /// The secret comes from outside, and is mixed with the salt, which is the last one.
        var isExtraction = false
        var salt = UnsafeRawBufferPointer(start: nil, count: 0)
        var hash: Hash
        var secret: UnsafeRawBufferPointer
        /// "tls13 ".
        var prefix: UnsafeRawBufferPointer
        var label: UnsafeRawBufferPointer
        /// Most often a hash of the handshake's messages.
        var context = UnsafeRawBufferPointer(start: nil, count: 0)
    }

    private static let prefix: StaticString = "tls13 "
    private static let zeros = [UInt8](repeating: 0, count: 48)

    /// The hash of nothing, by hash.
    private let hashesOfNothing: [[UInt8]]
    private let contexts: [OpaquePointer]

    /// `nil` when OpenSSL has no memory for it, no HMAC or no hash.
    init?() {
        hashesOfNothing = Hash.allCases.compactMap { hash in
            var bytes = [UInt8](repeating: 0, count: hash.bytes)
            let digest = hash == .sha256 ? EVP_sha256() : EVP_sha384()
            return EVP_Digest(nil, 0, &bytes, nil, digest, nil) == 1 ? bytes : nil
        }
        guard hashesOfNothing.count == Hash.allCases.count,
            let hmac = EVP_MAC_fetch(nil, "HMAC", nil)
        else { return nil }
        defer { EVP_MAC_free(hmac) }
        var contexts: [OpaquePointer] = []
        for hash in Hash.allCases {
            guard let context = EVP_MAC_CTX_new(hmac) else { break }
            contexts.append(context)
            // Sound: OpenSSL only reads the name.
            let name = UnsafeMutableRawPointer(mutating: hash.name.utf8Start)
                .assumingMemoryBound(to: CChar.self)
            let parameters = [
                OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0),
                OSSL_PARAM_construct_end(),
            ]
            guard EVP_MAC_CTX_set_params(context, parameters) == 1 else { break }
            if hash == Hash.allCases.last {
                self.contexts = contexts
                return
            }
        }
        for context in contexts { EVP_MAC_CTX_free(context) }
        return nil
    }

    deinit { for context in contexts { EVP_MAC_CTX_free(context) } }

    /// Fills `output`, with an empty context; answers false when OpenSSL refuses.
    func expand(
        _ secret: UnsafeRawBufferPointer, _ label: StaticString, _ hash: Hash,
        to output: Slice<UnsafeMutableRawBufferPointer>
    ) -> Bool {
        let step = Step(
            hash: hash, secret: secret, prefix: Self.bytes(Self.prefix), label: Self.bytes(label))
        return expand(step, to: UnsafeMutableRawBufferPointer(rebasing: output))
    }

    private static func bytes(_ text: StaticString) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    }

    /// Fills `output`; answers false when OpenSSL refuses, and for more or less than TLS ever asks
    /// for.
    func take(_ step: Step, to output: UnsafeMutableRawBufferPointer) -> Bool {
        step.isExtraction ? extract(step, to: output) : expand(step, to: output)
    }

    /// The salt is expanded first, unless it is the schedule's beginning.
    private func extract(_ step: Step, to output: UnsafeMutableRawBufferPointer) -> Bool {
        guard output.count == step.hash.bytes else { return false }
        return Self.zeros.withUnsafeBytes { zeros in
            let nothing = UnsafeRawBufferPointer(rebasing: zeros[..<step.hash.bytes])
            let secret = step.secret.isEmpty ? nothing : step.secret
            // A key of zeros is the same as none to HMAC.
            guard !step.salt.isEmpty else { return hmac(step.hash, nothing, secret, to: output) }
            return withUnsafeTemporaryAllocation(byteCount: step.hash.bytes, alignment: 8) { salt in
                defer { OPENSSL_cleanse(salt.baseAddress, salt.count) }
                return hashesOfNothing[step.hash.rawValue].withUnsafeBytes {
                    expand(
                        Step(
                            hash: step.hash, secret: step.salt, prefix: step.prefix,
                            label: step.label, context: $0), to: salt)
                } && hmac(step.hash, UnsafeRawBufferPointer(salt), secret, to: output)
            }
        }
    }

    private func expand(_ step: Step, to output: UnsafeMutableRawBufferPointer) -> Bool {
        let labelBytes = step.prefix.count + step.label.count
        guard output.count <= step.hash.bytes, labelBytes <= 255, step.context.count <= 255 else {
            return false
        }
        let infoBytes = labelBytes + step.context.count + 5
        return withUnsafeTemporaryAllocation(byteCount: infoBytes, alignment: 1) { info in
            // The structure HkdfLabel, then the number of the block (RFC 5869 section 2.3).
            info.storeBytes(of: UInt16(output.count).bigEndian, as: UInt16.self)
            info[2] = UInt8(labelBytes)
            var end = 3
            func append(_ bytes: UnsafeRawBufferPointer) {
                UnsafeMutableRawBufferPointer(rebasing: info[end...]).copyMemory(from: bytes)
                end += bytes.count
            }
            append(step.prefix)
            append(step.label)
            info[end] = UInt8(step.context.count)
            end += 1
            append(step.context)
            info[end] = 1
            return hmac(step.hash, step.secret, UnsafeRawBufferPointer(info), to: output)
        }
    }

    private func hmac(
        _ hash: Hash, _ key: UnsafeRawBufferPointer, _ message: UnsafeRawBufferPointer,
        to output: UnsafeMutableRawBufferPointer
    ) -> Bool {
        let context = contexts[hash.rawValue]
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: hash.bytes) { whole in
            defer { OPENSSL_cleanse(whole.baseAddress, whole.count) }
            var count = 0
            guard let start = whole.baseAddress,
                EVP_MAC_init(
                    context, key.baseAddress?.assumingMemoryBound(to: UInt8.self), key.count, nil)
                    == 1,
                EVP_MAC_update(
                    context, message.baseAddress?.assumingMemoryBound(to: UInt8.self),
                    message.count) == 1,
                EVP_MAC_final(context, start, &count, whole.count) == 1, count == whole.count
            else {
                ERR_clear_error()
                return false
            }
            output.copyMemory(from: UnsafeRawBufferPointer(start: start, count: output.count))
            return true
        }
    }
}

extension SecretSchedule.Step {
    /// What OpenSSL asks its TLS13-KDF for (EVP_KDF-TLS13_KDF(7)); `nil` for what is not known here.
    init?(_ parameters: UnsafePointer<OSSL_PARAM>) {
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        self.init(hash: .sha256, secret: nothing, prefix: nothing, label: nothing)
        var (mode, hasHash) = (Int32?.none, false)
        var parameter = parameters
        // Sound: OpenSSL ends its parameters by one without a key, and the values are its own for
        // the time of the call, and as long as it says.
        while let name = parameter.pointee.key {
            let data = parameter.pointee.data
            let value = UnsafeRawBufferPointer(
                start: data, count: data == nil ? 0 : parameter.pointee.data_size)
            switch UInt8(bitPattern: name.pointee) {
            case UInt8(ascii: "m") where Self.isName(name, "mode"):
                guard parameter.pointee.data_type == OSSL_PARAM_INTEGER,
                    value.count == MemoryLayout<Int32>.size
                else { return nil }
                mode = value.loadUnaligned(as: Int32.self)
            case UInt8(ascii: "d") where Self.isName(name, "digest"):
                guard let hash = Self.hash(value) else { return nil }
                (self.hash, hasHash) = (hash, true)
            case UInt8(ascii: "d") where Self.isName(name, "data"): context = value
            case UInt8(ascii: "k") where Self.isName(name, "key"): secret = value
            case UInt8(ascii: "s") where Self.isName(name, "salt"): salt = value
            case UInt8(ascii: "p") where Self.isName(name, "prefix"): prefix = value
            case UInt8(ascii: "l") where Self.isName(name, "label"): label = value
            default: return nil
            }
            parameter += 1
        }
        guard hasHash, !prefix.isEmpty, !label.isEmpty else { return nil }
        switch mode {
        case EVP_KDF_HKDF_MODE_EXPAND_ONLY where !secret.isEmpty && salt.isEmpty:
            isExtraction = false
        case EVP_KDF_HKDF_MODE_EXTRACT_ONLY where context.isEmpty: isExtraction = true
        default: return nil
        }
    }

    private static func isName(_ name: UnsafePointer<CChar>, _ expected: StaticString) -> Bool {
        // Sound: a static string ends with a zero.
        UnsafeRawPointer(expected.utf8Start).withMemoryRebound(
            to: CChar.self, capacity: expected.utf8CodeUnitCount + 1
        ) { strcmp(name, $0) == 0 }
    }

    private static func hash(_ name: UnsafeRawBufferPointer) -> SecretSchedule.Hash? {
        if name.elementsEqual("SHA2-256".utf8) || name.elementsEqual("SHA256".utf8) {
            return .sha256
        }
        if name.elementsEqual("SHA2-384".utf8) || name.elementsEqual("SHA384".utf8) {
            return .sha384
        }
        return nil
    }
}
