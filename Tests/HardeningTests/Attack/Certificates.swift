import COpenSSL
import Foundation

/// Certificates for tests, made with the same library that checks them.
struct TestCertificate: @unchecked Sendable {
    // Sound: nothing changes what the pointers stand for once `init` has returned.
    /// The paths of the PEM files.
    let certificate: String
    let key: String

    private let x509: OpaquePointer
    private let privateKey: OpaquePointer

    struct Failure: Error {}

    /// Makes a certificate in `directory`, signed by `issuer`, or self-signed as a CA.
    init(
        _ name: String, in directory: String, issuer: TestCertificate? = nil,
        alternativeNames: String? = nil
    ) throws {
        certificate = "\(directory)/\(name).pem"
        key = "\(directory)/\(name).key"
        guard let privateKey = Self.generateKey(), let x509 = X509_new() else { throw Failure() }
        self.privateKey = privateKey
        self.x509 = x509
        X509_set_version(x509, 2)
        ASN1_INTEGER_set(X509_get_serialNumber(x509), Int.random(in: 1...(1 << 48)))
        X509_gmtime_adj(X509_getm_notBefore(x509), -3600)
        X509_gmtime_adj(X509_getm_notAfter(x509), 86_400)
        X509_set_pubkey(x509, privateKey)
        let subject = X509_get_subject_name(x509)
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, name, -1, -1, 0)
        X509_set_issuer_name(x509, issuer.map { X509_get_subject_name($0.x509) } ?? subject)
        try add(NID_basic_constraints, issuer == nil ? "critical,CA:TRUE" : "critical,CA:FALSE")
        if let alternativeNames { try add(NID_subject_alt_name, alternativeNames) }
        guard X509_sign(x509, issuer?.privateKey ?? privateKey, EVP_sha256()) > 0 else {
            throw Failure()
        }
        try Self.write(certificate) { PEM_write_bio_X509($0, x509) }
        try Self.write(key) { PEM_write_bio_PrivateKey($0, privateKey, nil, nil, 0, nil, nil) }
    }

    private func add(_ extensionID: Int32, _ value: String) throws {
        guard let made = X509V3_EXT_conf_nid(nil, nil, extensionID, value) else { throw Failure() }
        defer { X509_EXTENSION_free(made) }
        guard X509_add_ext(x509, made, -1) == 1 else { throw Failure() }
    }

    private static func generateKey() -> OpaquePointer? {
        guard let context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil) else { return nil }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1,
            EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1,
            EVP_PKEY_keygen(context, &key) == 1
        else { return nil }
        return key
    }

    private static func write(_ path: String, _ body: (OpaquePointer) -> Int32) throws {
        guard let bio = BIO_new_file(path, "w") else { throw Failure() }
        defer { BIO_free(bio) }
        guard body(bio) == 1 else { throw Failure() }
    }
}
