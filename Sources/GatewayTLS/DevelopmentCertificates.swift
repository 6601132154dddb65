import COpenSSL
import Foundation

/// The certificates of a gateway that was given none: a certificate authority of this data
/// directory alone, and a server certificate for this machine's own names.
///
/// They live in `certs` (mode 0700) inside the data directory: `ca.pem` is what clients trust,
/// `server.pem` (leaf first, then the CA) and `server.key` are what the listener presents, `ca.key`
/// signs renewals. The private keys have mode 0600. The CA may vouch for `localhost` and loopback
/// addresses only (RFC 5280 section 4.2.1.10), so that one who steals `ca.key` gains nothing
/// against other hosts of people who trust the CA.
package struct DevelopmentCertificates: Equatable, Sendable {
    /// Path of the CA certificate, for clients.
    package let ca: String
    /// Path of the server's certificate chain, leaf first.
    package let certificate: String
    /// Path of the server's private key.
    package let key: String

    /// The host names the server certificate is for.
    package static let hostNames = ["localhost"]
    /// The addresses the server certificate is for.
    package static let addresses = ["127.0.0.1", "::1"]
    /// Days a new server certificate is valid; Apple's systems take at most 825 from a CA that
    /// the user added.
    package static let serverDays: Int64 = 397
    /// A server certificate with fewer days left is renewed.
    package static let renewalDays: Int64 = 30
    /// Days a new CA is valid.
    package static let caDays: Int64 = 3650

    static let daySeconds: Int64 = 86_400
    /// New certificates start this much earlier: other clocks may be behind.
    static let backdatingSeconds: Int64 = 3_600

    /// Makes what is missing, renews what is due and keeps everything else.
    ///
    /// A CA that is there is never replaced, whoever made it; when its key is there too, it is used
    /// for renewals. A server certificate that the CA issued for these names, that belongs to
    /// `server.key` and that is not due is kept as it is. Files appear whole or not at all, and a
    /// call that was cut short at any point is completed by the next. Two calls at the same time
    /// for one directory are not meant: the caller holds the data directory's lock.
    ///
    /// - Parameters:
    ///   - directory: The data directory; made (0700) when missing.
    ///   - now: Seconds since 1970.
    /// - Throws: ``Failure`` naming the file, and what to do when a person has to decide.
    package static func ensure(
        in directory: String, now: Int64
    ) throws(Failure) -> DevelopmentCertificates {
        defer { ERR_clear_error() }
        let certs = directory + "/certs"
        try PrivateDirectory.make(directory)
        try PrivateDirectory.make(certs)
        let made = DevelopmentCertificates(
            ca: certs + "/ca.pem", certificate: certs + "/server.pem", key: certs + "/server.key")
        let authority = try authority(made.ca, keyPath: certs + "/ca.key", now: now)
        let key = try key(made.key)
        let fitness = fitness(of: made, key: key, issuedBy: authority, now: now)
        if fitness == .good { return made }
        guard let signingKey = authority.key else {
            // Without the CA's key a certificate that is due is better than none.
            if fitness == .due { return made }
            throw Failure(
                .noSigningKey,
                "\(made.certificate) has to be made, but \(certs)/ca.key, which would sign it, is "
                    + "missing: put it there, or remove \(made.ca) for a new development CA")
        }
        let leaf = try issueServer(
            for: key, by: authority.certificate, signedWith: signingKey, now: now)
        try PrivateDirectory.replace(
            made.certificate, with: try pem(leaf) + pem(authority.certificate), mode: 0o600)
        return made
    }

    /// A CA certificate, and its key unless that is kept elsewhere.
    struct Authority {
        let certificate: PEMCertificate
        let key: PEMPrivateKey?
    }

    private static func authority(
        _ path: String, keyPath: String, now: Int64
    ) throws(Failure) -> Authority {
        guard PrivateDirectory.exists(path) else {
            // A key alone is what a first call leaves that was cut short after its first file.
            let key = try key(keyPath)
            let certificate = try issueAuthority(key, now: now)
            try PrivateDirectory.create(path, with: try pem(certificate), mode: 0o644)
            return Authority(certificate: certificate, key: key)
        }
        let certificate = try readCertificate(path)
        guard X509_check_ca(certificate.pointer) == 1 else {
            throw Failure(.unusable, "\(path) is not the certificate of a CA")
        }
        guard isValid(certificate, at: now) else {
            throw Failure(
                .expired,
                "\(path) is not valid now; check the clock, or remove \(path) and \(keyPath) for a "
                    + "new development CA, which clients then have to trust")
        }
        guard PrivateDirectory.exists(keyPath) else {
            return Authority(certificate: certificate, key: nil)
        }
        let key = try readKey(keyPath)
        guard X509_check_private_key(certificate.pointer, key.pointer) == 1 else {
            throw Failure(.unusable, "\(keyPath) does not belong to \(path)")
        }
        return Authority(certificate: certificate, key: key)
    }

    /// What the server certificate that is there is good for.
    private enum Fitness {
        /// For the listener, and not due for renewal.
        case good
        /// For the listener, but it ends soon.
        case due
        /// Nothing: it is missing, or not what the listener needs.
        case none
    }

    private static func fitness(
        of made: DevelopmentCertificates, key: PEMPrivateKey, issuedBy authority: Authority,
        now: Int64
    ) -> Fitness {
        guard PrivateDirectory.exists(made.certificate),
            let leaf = try? PEMSource.file(made.certificate).certificates().first,
            X509_check_private_key(leaf.pointer, key.pointer) == 1,
            X509_check_issued(authority.certificate.pointer, leaf.pointer) == X509_V_OK,
            X509_verify(leaf.pointer, X509_get0_pubkey(authority.certificate.pointer)) == 1,
            hostNames.allSatisfy({
                X509_check_host(leaf.pointer, $0, $0.utf8.count, 0, nil) == 1
            }),
            addresses.allSatisfy({ X509_check_ip_asc(leaf.pointer, $0, 0) == 1 }),
            isValid(leaf, at: now)
        else { return .none }
        return isValid(leaf, at: now + renewalDays * daySeconds) ? .good : .due
    }

    /// The key in a file, which is made when it is missing.
    private static func key(_ path: String) throws(Failure) -> PEMPrivateKey {
        if PrivateDirectory.exists(path) { return try readKey(path) }
        let key = try newKey()
        var text = try pem(key)
        defer { text.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) } }
        try PrivateDirectory.create(path, with: text, mode: 0o600)
        return key
    }

    private static func readKey(_ path: String) throws(Failure) -> PEMPrivateKey {
        do throws(TLSError) {
            return try PEMSource.file(path).privateKey()
        } catch {
            throw Failure(.unusable, error.message)
        }
    }

    private static func readCertificate(_ path: String) throws(Failure) -> PEMCertificate {
        do throws(TLSError) {
            let all = try PEMSource.file(path).certificates()
            // `certificates()` answers at least one.
            guard let first = all.first else { throw TLSError(.notPEM, "\(path) is empty") }
            return first
        } catch {
            throw Failure(.unusable, error.message)
        }
    }
}
