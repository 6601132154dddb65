import GatewaySigning

/// The rights of a client certificate: mutual TLS is the alternative to tokens for backends.
package struct CertificateGrant: Sendable, Equatable {
    /// The SAN URI of the certificate.
    package let uri: String
    /// The app, or `*`.
    package let app: String
    package let scopes: Set<Scope>
}
