import ClusterTestSupport
import Foundation
import GatewayTestSupport
import Testing

@testable import GatewayCluster

/// Connections over TLS to a server that accepts a client certificate for `certified`, SCRAM for
/// `scram`, a password in clear text for `plain`, and everybody without TLS.
@Suite(.enabled(if: PostgresServer.isInstalled)) struct PostgresTLSTests {
    private struct Fixture {
        let server: PostgresServer
        let port: UInt16

        init() throws {
            let port = try GatewayProcess.freePort()
            self.port = port
            server = try PostgresServer(
                [
                    "listen_addresses": "localhost", "ssl": "on",
                    "ssl_ca_file": "../ca.pem", "ssl_cert_file": "../localhost.pem",
                    "ssl_key_file": "../localhost.key",
                ], port: port
            ) { directory in
                try Self.issueCertificates(in: directory)
                try """
                local all postgres trust
                hostssl all certified all cert
                hostssl all scram all scram-sha-256
                hostssl all plain all password
                host all all all trust

                """.write(
                    toFile: directory + "/data/pg_hba.conf", atomically: false, encoding: .utf8)
            }
            try server.execute(
                """
                CREATE ROLE certified LOGIN;
                CREATE ROLE scram LOGIN PASSWORD 'secret';
                CREATE ROLE plain LOGIN PASSWORD 'secret'
                """)
            // The client's key belongs to this process, the server's to the server.
            if geteuid() == 0 {
                try PostgresServer.command(
                    "/bin/chown", ["root", server.directory + "/certified.key"])
            }
        }

        private static func issueCertificates(in directory: String) throws {
            let authority = try TestCertificate("ca", in: directory)
            _ = try TestCertificate("other", in: directory)
            for name in ["localhost", "certified"] {
                _ = try TestCertificate(
                    name, in: directory, issuer: authority, alternativeNames: "DNS:\(name)")
            }
        }

        /// Connects; returns `nil` on success.
        func failure(_ user: String, _ options: String, root: String = "ca") throws -> String? {
            let address = try PostgresAddress(
                """
                host=localhost port=\(port) dbname=postgres user=\(user) sslmode=verify-full \
                sslrootcert=\(server.directory)/\(root).pem \(options)
                """)
            do throws(PostgresError) {
                _ = try ClusterConnection(address.servers, within: 60_000)
                return nil
            } catch {
                return "\(error)"
            }
        }
    }

    @Test func onlyACertificateOrSCRAMBehindVerifiedTLSConnects() throws {
        let fixture = try Fixture()
        let directory = fixture.server.directory
        let certificate = "sslcert=\(directory)/certified.pem sslkey=\(directory)/certified.key"
        #expect(try fixture.failure("certified", certificate) == nil)
        #expect(try fixture.failure("scram", "password=secret") == nil)
        // The password is not sent to a server that asks for it in clear text.
        let plain = try fixture.failure("plain", "password=secret")
        #expect(plain?.contains("channel binding") == true, "\(plain ?? "connected")")
        let wrong = try fixture.failure("scram", "password=wrong")
        #expect(wrong?.contains("authentication failed") == true, "\(wrong ?? "connected")")
        let foreign = try fixture.failure("scram", "password=secret", root: "other")
        #expect(foreign?.contains("certificate verify failed") == true, "\(foreign ?? "connected")")
        #expect([plain, wrong, foreign].allSatisfy { $0?.contains("secret") == false })
    }
}
