import COpenSSL
import NIOCore
import Synchronization

/// Seals and opens the session tickets of a context, with keys in memory that are replaced as
/// ``TicketKeyRing`` says.
///
/// Without it OpenSSL uses one key for as long as the context exists, which may be months.
package final class TicketKeys: Sendable {
    private let ring = Mutex(TicketKeyRing())
    /// Monotonic seconds.
    private let now: @Sendable () -> Int64

    /// `now` returns the time in seconds, and must never go back.
    package init(now: @escaping @Sendable () -> Int64 = TicketKeys.monotonicSeconds) {
        self.now = now
    }

    /// Returns the time since the machine's start, in seconds.
    package static let monotonicSeconds: @Sendable () -> Int64 = {
        Int64(clamping: NIODeadline.now().uptimeNanoseconds / 1_000_000_000)
    }

    /// Adds keys from elsewhere, such as those that several nodes share.
    package func add(_ keys: [TicketKey]) { ring.withLock { $0.add(keys, at: now()) } }

    // MARK: OpenSSL

    /// Makes a context use these keys. They must live until its last handshake is done.
    func install(in context: OpaquePointer) -> Bool {
        let reference = Unmanaged.passUnretained(self).toOpaque()
        return Self.cipher != nil
            && SSL_CTX_set_ex_data(context, Self.applicationData, reference) == 1
            && SSL_CTX_set_tlsext_ticket_key_evp_cb(context, Self.callback) == 1
    }

    /// The index that OpenSSL reserves for the application (`SSL_CTX_set_app_data`).
    private static let applicationData: Int32 = 0

    // Sound: fetched once, never changed or freed.
    private struct Cipher: @unchecked Sendable {
        let pointer: OpaquePointer
    }

    /// AES-256-CBC, as OpenSSL's own tickets; looked up once.
    private static let cipher = EVP_CIPHER_fetch(nil, "AES-256-CBC", nil).map {
        Cipher(pointer: $0)
    }

    private static let callback:
        @convention(c) (
            OpaquePointer?, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<UInt8>?,
            OpaquePointer?, OpaquePointer?, Int32
        ) -> Int32 = { ssl, name, iv, cipher, mac, isSealing in
            guard let ssl, let name, let iv, let cipher, let mac,
                let reference = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), applicationData)
            else { return -1 }
            // Sound: the context outlives its handshakes, and it keeps the keys.
            let keys = Unmanaged<TicketKeys>.fromOpaque(reference).takeUnretainedValue()
            return isSealing == 1
                ? keys.seal(name: name, iv: iv, cipher: cipher, mac: mac)
                : keys.open(
                    name: name, iv: iv, cipher: cipher, mac: mac,
                    renews: SSL_version(ssl) == TLS1_3_VERSION)
        }

    /// Prepares to seal a ticket (SSL_CTX_set_tlsext_ticket_key_evp_cb(3)): 1, or 0 for no ticket.
    private func seal(
        name: UnsafeMutablePointer<UInt8>, iv: UnsafeMutablePointer<UInt8>,
        cipher: OpaquePointer, mac: OpaquePointer
    ) -> Int32 {
        let now = now()
        let key = ring.withLock { $0.sealing(at: now, make: Self.key) }
        guard let key, RAND_bytes(iv, EVP_CIPHER_get_iv_length(Self.cipher?.pointer)) == 1 else {
            ERR_clear_error()
            return 0
        }
        UnsafeMutableRawPointer(name).copyMemory(
            from: key.name.baseAddress ?? UnsafeRawPointer(name), byteCount: key.name.count)
        return Self.use(key, iv: iv, cipher: cipher, mac: mac, isSealing: true) ? 1 : 0
    }

    /// Prepares to open a ticket. Returns 1 to resume, 2 to resume and send a new ticket, 0 for a
    /// full handshake.
    ///
    /// - Parameter renews: Whether each resumption sends a new ticket, as in TLS 1.3, where a
    ///   client should use a ticket once (RFC 8446 appendix C.4).
    private func open(
        name: UnsafeMutablePointer<UInt8>, iv: UnsafeMutablePointer<UInt8>,
        cipher: OpaquePointer, mac: OpaquePointer, renews: Bool
    ) -> Int32 {
        let now = now()
        let name = UnsafeRawBufferPointer(start: name, count: TicketKey.nameBytes)
        let (key, sealing) = ring.withLock { ring in
            (ring.opening(name, at: now), ring.sealing(at: now, make: Self.key))
        }
        guard let key, Self.use(key, iv: iv, cipher: cipher, mac: mac, isSealing: false) else {
            return 0
        }
        return key === sealing && !renews ? 1 : 2
    }

    @Sendable private static func key(begins: Int64) -> TicketKey? {
        TicketKey(begins: begins) { RAND_priv_bytes($0.baseAddress, Int32($0.count)) == 1 }
    }

    private static func use(
        _ key: TicketKey, iv: UnsafeMutablePointer<UInt8>, cipher: OpaquePointer,
        mac: OpaquePointer, isSealing: Bool
    ) -> Bool {
        func bytes(_ part: UnsafeRawBufferPointer) -> UnsafePointer<UInt8>? {
            part.baseAddress?.assumingMemoryBound(to: UInt8.self)
        }
        // Sound: OpenSSL only reads the name, and the parameters before the call returns.
        let digest: StaticString = "SHA256"
        let name = UnsafeMutableRawPointer(mutating: digest.utf8Start)
            .assumingMemoryBound(to: CChar.self)
        let macKey = UnsafeMutableRawPointer(mutating: key.macKey.baseAddress)
        let isKeyed = OSSL_MAC_PARAM_KEY.withCString { keyParameter in
            OSSL_MAC_PARAM_DIGEST.withCString { digestParameter in
                EVP_MAC_CTX_set_params(
                    mac,
                    [
                        OSSL_PARAM_construct_octet_string(
                            keyParameter, macKey, TicketKey.macKeyBytes),
                        OSSL_PARAM_construct_utf8_string(digestParameter, name, 0),
                        OSSL_PARAM_construct_end(),
                    ])
            }
        }
        let isReady =
            isKeyed == 1
            && EVP_CipherInit_ex(
                cipher, Self.cipher?.pointer, nil, bytes(key.cipherKey), iv, isSealing ? 1 : 0)
                == 1
        // An error left in the queue would be taken for one of the handshake.
        if !isReady { ERR_clear_error() }
        return isReady
    }
}
