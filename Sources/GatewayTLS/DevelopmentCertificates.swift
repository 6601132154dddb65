import COpenSSL
import Foundation

/// The certificates of a gateway that is configured without any: a certificate authority for this
/// data directory alone, and a server certificate for this machine's own names.
///
/// They live in `certs` (mode 0700) inside the data directory. Clients trust `ca.pem`; the listener
/// presents `server.pem` (leaf first, then the CA) with `server.key`; `ca.key` signs renewals. The
/// private keys have mode 0600. The CA may certify only `localhost` and loopback addresses (RFC
/// 5280 section 4.2.1.10), so that a stolen `ca.key` is useless against other hosts of people who
/// trust the CA.
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
    /// The validity of a new server certificate, in days; Apple's systems accept at most 825 from a
    /// CA that the user added.
    package static let serverDays: Int64 = 397
    /// A server certificate that expires within this many days is renewed.
    package static let renewalDays: Int64 = 30
    /// The validity of a new CA, in days.
    package static let caDays: Int64 = 3650

    static let daySeconds: Int64 = 86_400
    /// New certificates start this many seconds early, because other clocks may be behind.
    static let backdatingSeconds: Int64 = 3_600

    /// Makes missing certificates, renews those that are due and keeps everything else.
    ///
    /// An existing CA is never replaced, whoever made it; if its key is there too, it signs
    /// renewals. A server certificate is kept if the CA issued it for these names, it belongs to
    /// `server.key` and it is not due. Files appear whole or not at all, and a call that is cut
    /// short at any point is completed by the next one. Concurrent calls for one directory are not
    /// supported: the caller holds the data directory's lock.
    ///
    /// - Parameters:
    ///   - directory: The data directory; made (0700) when missing.
    ///   - now: Seconds since 1970.
    /// - Throws: ``TLSError``, naming the file, and what to do when a person has to decide.
    package static func ensure(
        in directory: String, now: Int64
    ) throws(TLSError) -> DevelopmentCertificates {
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
            // Without the CA's key, a certificate that is due for renewal is better than none.
            if fitness == .due { return made }
            throw TLSError(
                .noSigningKey,
                "\(made.certificate) must be created, but \(certs)/ca.key, which would sign it, is "
                    + "missing: put it there, or remove \(made.ca) for a new development CA")
        }
        let leaf = try issueServer(
            for: key, by: authority.certificate, signedWith: signingKey, now: now)
        try PrivateDirectory.put(
            made.certificate, with: try pem(leaf) + pem(authority.certificate), mode: 0o600,
            replacing: true)
        return made
    }

    /// A CA certificate, and its key unless that is kept elsewhere.
    struct Authority {
        let certificate: PEMCertificate
        let key: PEMPrivateKey?
    }

    private static func authority(
        _ path: String, keyPath: String, now: Int64
    ) throws(TLSError) -> Authority {
        guard PrivateDirectory.exists(path) else {
            // A first call that was cut short after its first file leaves a key alone.
            let key = try key(keyPath)
            let certificate = try issueAuthority(key, now: now)
            try PrivateDirectory.put(path, with: try pem(certificate), mode: 0o644)
            return Authority(certificate: certificate, key: key)
        }
        guard let certificate = try PEMSource.file(path).certificates().first,
            X509_check_ca(certificate.pointer) == 1
        else { throw TLSError(.unusable, "\(path) is not the certificate of a CA") }
        guard isValid(certificate, at: now) else {
            throw TLSError(
                .expired,
                "\(path) is not valid now; check the clock, or remove \(path) and \(keyPath) for a "
                    + "new development CA, which clients then have to trust")
        }
        guard PrivateDirectory.exists(keyPath) else {
            return Authority(certificate: certificate, key: nil)
        }
        let key = try PEMSource.file(keyPath).privateKey()
        guard X509_check_private_key(certificate.pointer, key.pointer) == 1 else {
            throw TLSError(.unusable, "\(keyPath) does not match \(path)")
        }
        return Authority(certificate: certificate, key: key)
    }

    /// The state of the existing server certificate.
    private enum Fitness {
        /// Usable, and not due for renewal.
        case good
        /// Usable, but it expires soon.
        case due
        /// Missing, or not usable by the listener.
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

    /// The key in a file; the file is made when it is missing.
    private static func key(_ path: String) throws(TLSError) -> PEMPrivateKey {
        if PrivateDirectory.exists(path) { return try PEMSource.file(path).privateKey() }
        let key = try newKey()
        var text = try pem(key)
        defer { text.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) } }
        try PrivateDirectory.put(path, with: text, mode: 0o600)
        return key
    }
}
