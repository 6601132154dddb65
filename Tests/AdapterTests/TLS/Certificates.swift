import Foundation
import GatewayTestSupport

/// Certificates made once per test run with the `openssl` command, all with P-256 keys.
struct Certificates: Sendable {
    let directory: String
    static let made: Certificates = {
        do { return try Certificates() } catch { fatalError("no test certificates: \(error)") }
    }()

    var ca: String { directory + "/ca.pem" }
    var server: String { directory + "/server.pem" }
    var serverKey: String { directory + "/server.key" }
    var other: String { directory + "/other.pem" }
    var otherKey: String { directory + "/other.key" }
    var client: String { directory + "/client.pem" }
    var clientKey: String { directory + "/client.key" }
    var stranger: String { directory + "/stranger.pem" }
    var strangerKey: String { directory + "/stranger.key" }
    var sealedKey: String { directory + "/sealed.key" }

    private init() throws {
        directory = try GatewayProcess.temporaryDirectory()
        let ca = try TestCertificate("ca", in: directory, days: 30)
        _ = try TestCertificate("stranger", in: directory)
        for (name, days, names) in [
            ("server", 10, "DNS:localhost,IP:127.0.0.1"),
            ("other", 20, "DNS:localhost,IP:127.0.0.1"),
            ("client", 10, "URI:spiffe://test/backend,DNS:ignored,URI:urn:example:second"),
        ] {
            _ = try TestCertificate(
                name, in: directory, issuer: ca, alternativeNames: names, days: days)
        }
        try TestCertificate.openssl([
            "ec", "-in", serverKey, "-aes128", "-passout", "pass:secret", "-out", sealedKey,
        ])
    }

    /// Makes revocation lists of the CA: one without entries, one with the client's certificate, and
    /// one that has expired.
    func revocationLists() throws -> (empty: String, withClient: String, expired: String) {
        let base = "\(directory)/crl-\(UUID().uuidString)"
        try "".write(toFile: base + ".index", atomically: true, encoding: .utf8)
        try """
        [ca]
        default_ca = here
        [here]
        database = \(base).index
        certificate = \(ca)
        private_key = \(directory)/ca.key
        default_md = sha256
        """.write(toFile: base + ".cnf", atomically: true, encoding: .utf8)
        let (empty, withClient) = (base + "-empty.pem", base + "-client.pem")
        let expired = base + "-expired.pem"
        for arguments in [
            ["-gencrl", "-crldays", "1", "-out", empty],
            [
                "-gencrl", "-crl_lastupdate", "20200101000000Z", "-crl_nextupdate",
                "20200102000000Z", "-out", expired,
            ],
            ["-revoke", client], ["-gencrl", "-crldays", "1", "-out", withClient],
        ] {
            try TestCertificate.openssl(["ca", "-config", base + ".cnf"] + arguments)
        }
        return (empty, withClient, expired)
    }
}
