import COpenSSL

extension TLSContext {
    /// Whether the certificate is valid for a server that clients address by this name or IP
    /// address, according to its subject alternative names (RFC 9525 section 6).
    package func isCertificate(of host: String) -> Bool {
        guard let leaf = SSL_CTX_get0_certificate(pointer) else { return false }
        defer { ERR_clear_error() }
        return X509_check_host(leaf, host, 0, UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT), nil) == 1
            || X509_check_ip_asc(leaf, host, 0) == 1
    }
}
