import COpenSSL

/// The version of the loaded OpenSSL, such as `3.0.16`.
package var openSSLVersion: String {
    // Sound: OpenSSL returns a static text.
    OpenSSL_version(OPENSSL_VERSION_STRING).map { String(cString: $0) } ?? ""
}
