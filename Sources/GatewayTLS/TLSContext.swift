import COpenSSL
import Foundation

/// The settings of a server context besides certificate and key. The defaults are the gateway's.
package struct TLSContextSettings: Sendable {
    /// Protocol versions offered; TLS 1.1 and older are not available at all (RFC 8996).
    package enum Versions: Sendable {
        case tls12AndTLS13
        case tls12Only
        case tls13Only
    }

    /// Whether clients are asked for a certificate.
    package enum ClientCertificates: Sendable {
        /// Not asked.
        case none
        /// Asked for, but optional. A certificate that is sent must chain to `authorities`.
        case optional(authorities: PEMSource)
        /// Required; it must chain to `authorities`.
        case required(authorities: PEMSource)
    }

    /// Versions offered.
    package var versions = Versions.tls12AndTLS13
    /// TLS 1.3 suites in our order of preference. AES-128-GCM is the cheapest per record here.
    package var suites = [
        "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256",
    ]
    /// TLS 1.2 suites in our order of preference: forward secret and authenticated ones only.
    package var suitesTLS12 = [
        "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256",
        "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
        "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
    ]
    /// Application protocols in our order of preference (RFC 7301), each 1 to 255 bytes.
    package var applicationProtocols = ["h2", "http/1.1"]
    /// Whether clients are asked for a certificate.
    package var clientCertificates = ClientCertificates.none
    /// The lists of revoked client certificates; `nil` to check none. A client's certificate is then
    /// refused unless a list of its issuer is among them that is neither expired nor names it.
    package var revocationLists: PEMSource?
    /// The lifetime of a ticket that resumes a session, in seconds.
    package var ticketLifetimeSeconds = 7200
    /// The keys of the tickets. By default each context has its own, so that none resumes a session of
    /// another.
    package var ticketKeys = TicketKeys()

    package init() {}
}

/// The certificate, key and rules of a TLS listener, checked and ready to use.
///
/// Built once, then read by every event loop. No session is stored: resumption uses tickets, sealed
/// with keys in memory, see ``TicketKeys``. Early data is not accepted (RFC 8446 section
/// 8: it can be replayed), nor are renegotiation and compression.
package final class TLSContext: @unchecked Sendable {
    // Sound: the context is changed in `init` only; OpenSSL locks its reference count itself,
    // `TicketKeys` locks the keys, and the ALPN list is written once before the first handshake.
    let pointer: OpaquePointer
    private let protocols: UnsafeMutablePointer<ALPNList>
    private let ticketKeys: TicketKeys
    // Sound: OpenSSL reads both during handshakes, and each connection keeps this object until its
    // own handshake is done.

    /// The expiry time of the leaf certificate. A context with an expired certificate works: the
    /// caller warns the operator, and clients refuse the certificate.
    package let notAfter: Date
    /// Application protocols offered, in our order of preference.
    package let applicationProtocols: [String]

    /// Builds a context from a chain (leaf first) and the leaf's key, both PEM.
    ///
    /// - Throws: `TLSError`: `fileUnreadable`, `notPEM` or `keyMismatch`, naming the source at
    ///   fault; `invalidSettings`; or `engine` when OpenSSL makes no context.
    package init(
        certificateChain: PEMSource, privateKey: PEMSource,
        settings: TLSContextSettings = TLSContextSettings()
    ) throws(TLSError) {
        let chain = try certificateChain.certificates()
        let key = try privateKey.privateKey()
        guard let leaf = chain.first else {
            throw TLSError(.notPEM, "\(certificateChain.name) contains no certificate")
        }
        let notAfter = try leaf.notAfter()
        guard let context = SSL_CTX_new(TLS_server_method()) else {
            throw TLSError(.engine, "no TLS context: \(OpenSSLErrors.takeReason())")
        }
        // From here on `deinit` frees the context, even if a step below fails.
        pointer = context
        protocols = .allocate(capacity: 1)
        protocols.initialize(to: ALPNList(bytes: []))
        ticketKeys = settings.ticketKeys
        applicationProtocols = settings.applicationProtocols
        self.notAfter = notAfter
        ERR_clear_error()
        try install(
            leaf: leaf, chain: chain.dropFirst(), key: key, from: certificateChain, privateKey)
        try apply(settings)
        try askForCertificates(settings.clientCertificates)
        try refuseRevoked(settings.revocationLists)
    }

    deinit {
        SSL_CTX_free(pointer)
        protocols.deinitialize(count: 1)
        protocols.deallocate()
    }

    private func install(
        leaf: PEMCertificate, chain: ArraySlice<PEMCertificate>, key: PEMPrivateKey,
        from chainSource: PEMSource, _ keySource: PEMSource
    ) throws(TLSError) {
        guard SSL_CTX_use_certificate(pointer, leaf.pointer) == 1 else {
            let reason = OpenSSLErrors.takeReason()
            throw TLSError(.notPEM, "\(chainSource.name): leaf certificate refused: \(reason)")
        }
        for certificate in chain
        where gateway_SSL_CTX_add1_chain_cert(pointer, certificate.pointer) != 1 {
            let reason = OpenSSLErrors.takeReason()
            throw TLSError(.notPEM, "\(chainSource.name): chain certificate refused: \(reason)")
        }
        guard X509_check_private_key(leaf.pointer, key.pointer) == 1,
            SSL_CTX_use_PrivateKey(pointer, key.pointer) == 1
        else {
            ERR_clear_error()
            throw TLSError(
                .keyMismatch,
                "the key in \(keySource.name) does not match the certificate in \(chainSource.name)"
            )
        }
    }

    private func apply(_ settings: TLSContextSettings) throws(TLSError) {
        let (lowest, highest) =
            switch settings.versions {
            case .tls12AndTLS13: (TLS1_2_VERSION, TLS1_3_VERSION)
            case .tls12Only: (TLS1_2_VERSION, TLS1_2_VERSION)
            case .tls13Only: (TLS1_3_VERSION, TLS1_3_VERSION)
            }
        guard gateway_SSL_CTX_set_version_range(pointer, lowest, highest) == 1 else {
            throw TLSError(.invalidSettings, "protocol versions refused")
        }
        guard !settings.suites.isEmpty, !settings.suitesTLS12.isEmpty,
            SSL_CTX_set_ciphersuites(pointer, settings.suites.joined(separator: ":")) == 1,
            SSL_CTX_set_cipher_list(pointer, settings.suitesTLS12.joined(separator: ":")) == 1
        else {
            let reason = OpenSSLErrors.takeReason()
            throw TLSError(.invalidSettings, "cipher suites refused: \(reason)")
        }
        guard gateway_SSL_CTX_set1_groups_list(pointer, "X25519:P-256:P-384") == 1 else {
            throw TLSError(.invalidSettings, "key exchange groups refused")
        }
        _ = gateway_SSL_CTX_set_server_options(pointer)
        _ = gateway_SSL_CTX_set_mode(
            pointer, Int(SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER))
        _ = gateway_SSL_CTX_set_session_cache_mode(pointer, Int(SSL_SESS_CACHE_OFF))
        guard ticketKeys.install(in: pointer) else {
            throw TLSError(.engine, "no ticket keys: \(OpenSSLErrors.takeReason())")
        }
        SSL_CTX_set_timeout(pointer, settings.ticketLifetimeSeconds)
        // One ticket: each costs a record in the handshake, and a client that resumes gets a new
        // one.
        SSL_CTX_set_num_tickets(pointer, 1)
        SSL_CTX_set_max_early_data(pointer, 0)
        SSL_CTX_set_recv_max_early_data(pointer, 0)
        // A context that asks for certificates resumes sessions only if it has a session id
        // context.
        let id: StaticString = "timeline-gateway"
        SSL_CTX_set_session_id_context(pointer, id.utf8Start, UInt32(id.utf8CodeUnitCount))
        TrafficSecrets.observe(pointer)
        guard let list = ALPNList(settings.applicationProtocols) else {
            throw TLSError(.invalidSettings, "application protocols must be 1 to 255 bytes each")
        }
        protocols.pointee = list
        SSL_CTX_set_alpn_select_cb(pointer, ALPNList.select, protocols)
    }

    private func refuseRevoked(_ source: PEMSource?) throws(TLSError) {
        guard let source else { return }
        let store = SSL_CTX_get_cert_store(pointer)
        for list in try source.revocationLists() {
            guard X509_STORE_add_crl(store, list.pointer) == 1 else {
                let reason = OpenSSLErrors.takeReason()
                throw TLSError(.notPEM, "\(source.name): revocation list refused: \(reason)")
            }
        }
        X509_STORE_set_flags(store, UInt(X509_V_FLAG_CRL_CHECK))
    }

    private func askForCertificates(
        _ mode: TLSContextSettings.ClientCertificates
    ) throws(TLSError) {
        let (authorities, flags): (PEMSource, Int32)
        switch mode {
        case .none: return
        case .optional(let source): (authorities, flags) = (source, SSL_VERIFY_PEER)
        case .required(let source):
            (authorities, flags) = (source, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT)
        }
        let store = SSL_CTX_get_cert_store(pointer)
        for certificate in try authorities.certificates() {
            // The CA names are sent to clients, so that they can choose among their certificates.
            guard X509_STORE_add_cert(store, certificate.pointer) == 1,
                SSL_CTX_add_client_CA(pointer, certificate.pointer) == 1
            else {
                let reason = OpenSSLErrors.takeReason()
                throw TLSError(.notPEM, "\(authorities.name): CA refused: \(reason)")
            }
        }
        SSL_CTX_set_verify(pointer, flags, nil)
    }

    /// Whether the certificate is valid for a server that clients address by this name or IP
    /// address, according to its subject alternative names (RFC 9525 section 6).
    package func isCertificate(of host: String) -> Bool {
        guard let leaf = SSL_CTX_get0_certificate(pointer) else { return false }
        defer { ERR_clear_error() }
        return X509_check_host(leaf, host, 0, UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT), nil) == 1
            || X509_check_ip_asc(leaf, host, 0) == 1
    }
}

/// Application protocols in the format of RFC 7301 section 3.1: each is preceded by its length.
struct ALPNList {
    let bytes: [UInt8]
    /// The list for connections of listeners that do not speak HTTP/2.
    private let http1 = [8] + Array("http/1.1".utf8)

    /// The index under which OpenSSL keeps the mark of a connection restricted to HTTP/1.1; -1 when
    /// OpenSSL has no index left.
    private static let place = CRYPTO_get_ex_new_index(
        CRYPTO_EX_INDEX_SSL, 0, nil, nil, nil, nil)

    static func restrictToHTTP1(_ ssl: OpaquePointer) {
        // Any value but null is a mark; it is never dereferenced.
        SSL_set_ex_data(ssl, place, UnsafeMutableRawPointer(bitPattern: 1))
    }

    init(bytes: [UInt8]) { self.bytes = bytes }

    /// Returns `nil` when the list is empty or a name is not 1 to 255 bytes long.
    init?(_ names: [String]) {
        guard !names.isEmpty else { return nil }
        var bytes: [UInt8] = []
        for name in names {
            guard let length = UInt8(exactly: name.utf8.count), length > 0 else { return nil }
            bytes.append(length)
            bytes.append(contentsOf: name.utf8)
        }
        self.bytes = bytes
    }

    /// Picks the protocol that we prefer most among those the client offers; refuses the handshake
    /// with `no_application_protocol` when there is none (RFC 7301 section 3.2).
    static let select: SSL_CTX_alpn_select_cb_func = {
        ssl, chosen, chosenLength, offered, offeredLength, argument in
        guard let chosen, let chosenLength, let argument else { return SSL_TLSEXT_ERR_ALERT_FATAL }
        let ours = argument.assumingMemoryBound(to: ALPNList.self)
        let list =
            SSL_get_ex_data(ssl, place) == nil ? ours.pointee.bytes : ours.pointee.http1
        return list.withUnsafeBufferPointer { ours in
            var pick: UnsafeMutablePointer<UInt8>?
            let result = SSL_select_next_proto(
                &pick, chosenLength, ours.baseAddress, UInt32(ours.count), offered, offeredLength)
            guard result == OPENSSL_NPN_NEGOTIATED, let pick else {
                return SSL_TLSEXT_ERR_ALERT_FATAL
            }
            // The pointer is into the list, which lives as long as the context.
            chosen.pointee = UnsafePointer(pick)
            return SSL_TLSEXT_ERR_OK
        }
    }
}
