import ClusterTestSupport
import Foundation
import GatewayTestSupport
import Testing

@testable import GatewayCluster

@Suite struct PostgresAddressTests {
    @Test(arguments: [
        "host=/run/postgresql user=a dbname=d",
        "postgres:///d?host=/run/postgresql&user=a",
        "postgres://a@one,two:5433/d?sslmode=verify-full&sslrootcert=ca&sslcert=c&sslkey=k",
        "postgres://a:secret@one/d?sslmode=verify-full&sslrootcert=ca",
        "host=/run/postgresql,one user=a dbname=d sslmode=verify-full sslrootcert=ca passfile=p",
    ])
    func safeAddressesAreAccepted(_ text: String) throws {
        #expect(try PostgresAddress(text).user == "a")
    }

    @Test(arguments: [
        ("postgres://a@one/d", "sslmode"),
        ("postgres://a:secret@one/d?sslmode=require&sslrootcert=ca", "sslmode"),
        ("host=/run,one user=a dbname=d", "sslmode"),
        ("postgres://a:secret@one/d?sslmode=verify-full", "sslrootcert"),
        ("postgres://a@one/d?sslmode=verify-full&sslrootcert=ca", "sslcert"),
        ("postgres://a@one/d?sslmode=verify-full&sslrootcert=ca&sslcert=c", "sslcert"),
        (
            "postgres://a:secret@one/d?sslmode=verify-full&sslrootcert=ca&sslcert=c&sslkey=k",
            "sslcert"
        ),
        ("host=/run user=a dbname=d options=-csynchronous_commit=off", "options"),
        ("host=/run user=a dbname=d hostaddr=127.0.0.1", "hostaddr"),
        ("host=/run user=a dbname=d port=1,2", "port"),
        ("host=/run user=a", "dbname"),
        ("user=a dbname=d", "host"),
        ("postgres://a:se%zzcret@one", "postgres://"),
    ])
    func unsafeAddressesAreRefusedWithTheOption(_ text: String, option: String) {
        let rejection = #expect(throws: PostgresAddress.Rejection.self) {
            try PostgresAddress(text)
        }
        #expect(rejection?.description.contains(option) == true)
        #expect(rejection?.description.contains("cret") == false)
    }

    @Test func theDescriptionHasNoPassword() throws {
        let address = try PostgresAddress(
            "postgres://a:secret@one,two/d?sslmode=verify-full&sslrootcert=ca")
        #expect("\(address)" == "a at one, two")
        var dumped = ""
        dump(address, to: &dumped)
        for text in [dumped, String(reflecting: address), "\([address])"] {
            #expect(!text.contains("secret"))
        }
    }

    @Test func aPasswordIsOnlyUsedWithSCRAMAndEveryServerHasItsOwnOptions() throws {
        let address = try PostgresAddress(
            "host=/run,one,two port=1,2,3 user=a dbname=d password=p sslmode=verify-full"
                + " sslrootcert=ca")
        #expect(address.servers.map { $0["host"] } == ["/run", "one", "two"])
        #expect(address.servers.map { $0["port"] } == ["1", "2", "3"])
        #expect(address.servers.map { $0["channel_binding"] } == ["prefer", "require", "require"])
        #expect(address.servers.allSatisfy { $0["target_session_attrs"] == "read-write" })
        #expect(address.servers.allSatisfy { $0["tcp_user_timeout"] == "3000" })
    }

    @Test func `each attempt begins with another server, and names all that are of no use`() throws
    {
        let address = try PostgresAddress("postgres://a@/b?host=/nowhere/1,/nowhere/2")
        #expect(
            (0...2).map { address.servers(at: $0).map { $0["host"] } } == [
                ["/nowhere/1", "/nowhere/2"], ["/nowhere/2", "/nowhere/1"],
                ["/nowhere/1", "/nowhere/2"],
            ])
        let connections: [() throws -> Void] = [
            { _ = try ClusterConnection(address.servers) },
            { _ = try PostgresAdministration(address) },
        ]
        for connect in connections {
            let error = #expect(throws: PostgresError.self) { try connect() }
            for name in ["/nowhere/1", "/nowhere/2"] {
                #expect("\(try #require(error))".contains(name))
            }
        }
    }
}

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
