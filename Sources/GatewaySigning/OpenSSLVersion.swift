import COpenSSL

/// The version of the OpenSSL that is loaded, such as `3.0.16`.
package var openSSLVersion: String {
    // Sound: OpenSSL answers with a text of its own that lives as long as the process.
    OpenSSL_version(OPENSSL_VERSION_STRING).map { String(cString: $0) } ?? ""
}
