import COpenSSL

/// The key and certificate by which the nodes of a cluster recognise each other. Both are derived
/// from the cluster's secret, so all nodes have the same. No authority issues them, and they do not
/// expire.
package struct NodeIdentity: Sendable {
    /// The name in the certificate.
    package static let name = "node.timeline.internal"
    package static let secretBytes = 32

    /// In PEM.
    package let certificate: [UInt8]
    /// In PEM.
    package let key: [UInt8]

    /// Throws ``TLSError`` (`engine`).
    package init(secret: [UInt8]) throws(TLSError) {
        guard
            let pointer = EVP_PKEY_new_raw_private_key(
                EVP_PKEY_ED25519, nil, secret, secret.count)
        else { throw DevelopmentCertificates.engine() }
        let key = PEMPrivateKey(pointer: pointer)
        // The end of time of RFC 5280 section 4.1.2.5.
        let certificate = try DevelopmentCertificates.draft(
            for: key, name: Self.name, now: DevelopmentCertificates.backdatingSeconds,
            end: 253_402_300_799)
        guard ASN1_INTEGER_set(X509_get_serialNumber(certificate.pointer), 1) == 1 else {
            throw DevelopmentCertificates.engine()
        }
        try DevelopmentCertificates.setIssuer(certificate, certificate)
        try DevelopmentCertificates.add(
            [(NID_subject_alt_name, "DNS:\(Self.name)")], to: certificate,
            issuedBy: certificate)
        try DevelopmentCertificates.sign(certificate, with: key)
        self.certificate = try DevelopmentCertificates.pem(certificate)
        self.key = try DevelopmentCertificates.pem(key)
    }

    /// Returns the TLS context of a port for nodes only.
    package func context() throws(TLSError) -> TLSContext {
        let certificate = PEMSource.text(String(decoding: certificate, as: UTF8.self))
        var settings = TLSContextSettings()
        settings.versions = .tls13Only
        settings.clientCertificates = .required(authorities: certificate)
        return try TLSContext(
            certificateChain: certificate,
            privateKey: .text(String(decoding: key, as: UTF8.self)), settings: settings)
    }
}
