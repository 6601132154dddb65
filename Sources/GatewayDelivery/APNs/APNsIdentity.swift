/// The certificate that a pool presents to APNs.
package struct APNsIdentity: Sendable, Hashable {
    /// The certificate in PEM, followed by the intermediate certificates up to its root.
    package var certificate: [UInt8]
    /// Its private key in PEM, not encrypted.
    package var key: [UInt8]

    package init(certificate: [UInt8], key: [UInt8]) {
        self.certificate = certificate
        self.key = key
    }
}
