import COpenSSL

/// Reads names from a client's certificate.
enum PeerCertificate {
    /// The most URIs read from one certificate; further ones are ignored.
    static let urisMax = 16
    /// The longest URI that is read; a longer one is ignored.
    static let uriBytesMax = 2048
    /// The longest user id that is read; a longer one is ignored (RFC 4524 section 2.25).
    static let userIDBytesMax = 256

    /// The URIs of the subject alternative name (RFC 5280 section 4.2.1.6), if the peer presented a
    /// certificate that was verified and has not expired; otherwise none. The expiry check matters
    /// for resumed sessions, whose certificate was verified when the ticket was issued.
    static func uris(of ssl: OpaquePointer) -> [String] {
        guard let certificate = verified(of: ssl),
            let found = X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil)
        else { return [] }
        let names = OpaquePointer(found)
        defer { GENERAL_NAMES_free(names) }
        var uris: [String] = []
        for index in 0..<max(0, OPENSSL_sk_num(names)) where uris.count < urisMax {
            guard let entry = OPENSSL_sk_value(names, index) else { continue }
            let name = entry.assumingMemoryBound(to: GENERAL_NAME.self)
            guard name.pointee.type == GEN_URI,
                let text = name.pointee.d.uniformResourceIdentifier,
                let bytes = ASN1_STRING_get0_data(text)
            else { continue }
            let count = Int(ASN1_STRING_length(text))
            guard count > 0, count <= uriBytesMax else { continue }
            // An IA5String: anything beyond ASCII, or an embedded NUL, is not a URI.
            let buffer = UnsafeBufferPointer(start: bytes, count: count)
            guard buffer.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { continue }
            uris.append(String(decoding: buffer, as: UTF8.self))
        }
        return uris
    }

    /// The user id of the subject (RFC 4519 section 2.39), under the same conditions. In the
    /// certificates of Apple's push service it is an app's bundle id.
    static func userID(of ssl: OpaquePointer) -> String? {
        guard let certificate = verified(of: ssl), let name = X509_get_subject_name(certificate)
        else { return nil }
        let index = X509_NAME_get_index_by_NID(name, NID_userId, -1)
        guard index >= 0,
            let text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, index)),
            let bytes = ASN1_STRING_get0_data(text)
        else { return nil }
        let count = Int(ASN1_STRING_length(text))
        guard count > 0, count <= userIDBytesMax else { return nil }
        let buffer = UnsafeBufferPointer(start: bytes, count: count)
        guard buffer.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
        return String(decoding: buffer, as: UTF8.self)
    }

    private static func verified(of ssl: OpaquePointer) -> OpaquePointer? {
        guard let certificate = SSL_get0_peer_certificate(ssl),
            SSL_get_verify_result(ssl) == Int(X509_V_OK),
            X509_cmp_current_time(X509_get0_notAfter(certificate)) > 0
        else { return nil }
        return certificate
    }
}
