import COpenSSL

extension DevelopmentCertificates {
    /// A new P-256 key.
    static func newKey() throws(TLSError) -> PEMPrivateKey {
        guard let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else { throw engine() }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1,
            EVP_PKEY_CTX_set_group_name(context, "P-256") == 1,
            EVP_PKEY_generate(context, &key) == 1, let key
        else { throw engine() }
        return PEMPrivateKey(pointer: key)
    }

    /// A self-signed CA certificate (RFC 5280 sections 4.2.1.1 to 4.2.1.10).
    static func issueAuthority(
        _ key: PEMPrivateKey, now: Int64
    ) throws(TLSError) -> PEMCertificate {
        let certificate = try draft(
            for: key, name: "Timeline Gateway development CA", now: now,
            end: now + caDays * daySeconds)
        try setIssuer(certificate, certificate)
        try add(
            [
                (NID_basic_constraints, "critical,CA:TRUE,pathlen:0"),
                (NID_key_usage, "critical,keyCertSign,cRLSign"),
                (NID_subject_key_identifier, "hash"),
                (NID_authority_key_identifier, "keyid:always"),
                (
                    NID_name_constraints,
                    "critical,permitted;DNS:localhost,permitted;IP:127.0.0.0/255.0.0.0,"
                        + "permitted;IP:::1/ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
                ),
            ], to: certificate, issuedBy: certificate)
        try sign(certificate, with: key)
        return certificate
    }

    /// A server certificate, which never outlives its CA.
    static func issueServer(
        for key: PEMPrivateKey, by authority: PEMCertificate,
        signedWith authorityKey: PEMPrivateKey,
        now: Int64
    ) throws(TLSError) -> PEMCertificate {
        let certificate = try draft(
            for: key, name: "localhost", now: now, end: now + serverDays * daySeconds)
        if let end = X509_get0_notAfter(authority.pointer),
            ASN1_TIME_compare(end, X509_get0_notAfter(certificate.pointer)) < 0
        {
            guard X509_set1_notAfter(certificate.pointer, end) == 1 else { throw engine() }
        }
        try setIssuer(certificate, authority)
        let names = hostNames.map { "DNS:\($0)" } + addresses.map { "IP:\($0)" }
        try add(
            [
                (NID_basic_constraints, "critical,CA:FALSE"),
                (NID_key_usage, "critical,digitalSignature"),
                (NID_ext_key_usage, "serverAuth"),
                (NID_subject_key_identifier, "hash"),
                (NID_authority_key_identifier, "keyid:always"),
                (NID_subject_alt_name, names.joined(separator: ",")),
            ], to: certificate, issuedBy: authority)
        try sign(certificate, with: authorityKey)
        return certificate
    }

    /// Whether `moment`, seconds since 1970, lies within a certificate's validity.
    static func isValid(_ certificate: PEMCertificate, at moment: Int64) -> Bool {
        guard var moment = time_t(exactly: moment) else { return false }
        // `X509_cmp_time` returns -1 for "not later than the moment", 1 for "later", 0 for "not a
        // time".
        return X509_cmp_time(X509_get0_notBefore(certificate.pointer), &moment) < 0
            && X509_cmp_time(X509_get0_notAfter(certificate.pointer), &moment) > 0
    }

    /// A version 3 certificate with everything but issuer, extensions and signature.
    static func draft(
        for key: PEMPrivateKey, name: String, now: Int64, end: Int64
    ) throws(TLSError) -> PEMCertificate {
        guard let pointer = X509_new() else { throw engine() }
        let certificate = PEMCertificate(pointer: pointer)
        guard X509_set_version(pointer, Int(X509_VERSION_3)) == 1,
            X509_set_pubkey(pointer, key.pointer) == 1,
            let start = ASN1_TIME_set(nil, time_t(now - backdatingSeconds))
        else { throw engine() }
        defer { ASN1_TIME_free(start) }
        guard let end = ASN1_TIME_set(nil, time_t(end)) else { throw engine() }
        defer { ASN1_TIME_free(end) }
        guard X509_set1_notBefore(pointer, start) == 1, X509_set1_notAfter(pointer, end) == 1,
            X509_NAME_add_entry_by_NID(
                X509_get_subject_name(pointer), NID_commonName, MBSTRING_UTF8, Array(name.utf8),
                Int32(name.utf8.count), -1, 0) == 1
        else { throw engine() }
        try setSerial(certificate)
        return certificate
    }

    /// A random serial number: at most 20 octets and positive (RFC 5280 section 4.1.2.2).
    private static func setSerial(_ certificate: PEMCertificate) throws(TLSError) {
        guard let number = BN_new() else { throw engine() }
        defer { BN_free(number) }
        // 127 bits with the highest one set: never zero, and DER needs no sign octet.
        guard BN_rand(number, 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1,
            BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate.pointer)) != nil
        else { throw engine() }
    }

    static func setIssuer(
        _ certificate: PEMCertificate, _ issuer: PEMCertificate
    ) throws(TLSError) {
        guard
            X509_set_issuer_name(
                certificate.pointer, X509_get_subject_name(issuer.pointer)) == 1
        else { throw engine() }
    }

    /// Adds extensions in order; the key identifiers are computed by OpenSSL.
    static func add(
        _ extensions: [(Int32, String)], to certificate: PEMCertificate,
        issuedBy issuer: PEMCertificate
    ) throws(TLSError) {
        var context = X509V3_CTX()
        X509V3_set_ctx(&context, issuer.pointer, certificate.pointer, nil, nil, 0)
        for (identifier, value) in extensions {
            guard let made = X509V3_EXT_conf_nid(nil, &context, identifier, value) else {
                throw engine()
            }
            defer { X509_EXTENSION_free(made) }
            guard X509_add_ext(certificate.pointer, made, -1) == 1 else { throw engine() }
        }
    }

    static func sign(
        _ certificate: PEMCertificate, with key: PEMPrivateKey
    ) throws(TLSError) {
        // Ed25519 has its own.
        let digest = EVP_PKEY_get_base_id(key.pointer) == EVP_PKEY_ED25519 ? nil : EVP_sha256()
        guard X509_sign(certificate.pointer, key.pointer, digest) > 0 else {
            throw engine()
        }
    }

    static func engine() -> TLSError {
        TLSError(.engine, "OpenSSL could not make a certificate: \(OpenSSLErrors.takeReason())")
    }
}
