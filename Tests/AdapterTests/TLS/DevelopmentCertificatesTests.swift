import Foundation
import GatewayTLS
import GatewayTestSupport
import Testing

@Suite struct DevelopmentCertificatesTests {
    private let now = Int64(Date().timeIntervalSince1970)
    private let day: Int64 = 86_400

    /// A data directory that is removed with the test.
    private final class Place {
        let path = NSTemporaryDirectory() + "/gateway-development-\(UUID().uuidString)"
        deinit { try? FileManager.default.removeItem(atPath: path) }

        var caKey: String { path + "/certs/ca.key" }

        func ensure(_ now: Int64) throws -> DevelopmentCertificates {
            try DevelopmentCertificates.ensure(in: path, now: now)
        }

        /// Returns the contents of all files, by name.
        func contents() throws -> [String: Data] {
            let names = try FileManager.default.contentsOfDirectory(atPath: path + "/certs")
            return try Dictionary(
                uniqueKeysWithValues: names.map {
                    ($0, try Data(contentsOf: URL(fileURLWithPath: path + "/certs/" + $0)))
                })
        }

        func mode(_ name: String) throws -> Int? {
            let attributes = try FileManager.default.attributesOfItem(atPath: path + "/" + name)
            return attributes[.posixPermissions] as? Int
        }
    }

    private func run(
        _ arguments: [String]
    ) throws -> (exit: GatewayProcessExit, output: String) {
        try GatewayProcess.run(arguments, program: "/usr/bin/env")
    }

    private func verify(_ made: DevelopmentCertificates, name: [String]) throws -> String {
        try run(
            ["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", made.ca]
                + name + [made.certificate]
        ).output
    }

    @Test(arguments: [
        ["-verify_hostname", "localhost"], ["-verify_ip", "127.0.0.1"], ["-verify_ip", "::1"],
    ])
    func openSSLVerifiesTheServerStrictly(name: [String]) throws {
        let place = Place()
        let made = try place.ensure(now)
        #expect(try verify(made, name: name) == "\(made.certificate): OK\n")
    }

    @Test(arguments: [["-verify_hostname", "example.com"], ["-verify_ip", "192.0.2.1"]])
    func otherNamesAreNotVouchedFor(name: [String]) throws {
        let place = Place()
        let made = try place.ensure(now)
        #expect(try verify(made, name: name).contains("mismatch"))
    }

    @Test func theCertificatesSayWhatTheyAreFor() throws {
        let place = Place()
        let made = try place.ensure(now)
        let server = try run(["openssl", "x509", "-noout", "-text", "-in", made.certificate]).output
        for text in [
            "DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1", "CA:FALSE",
            "TLS Web Server Authentication", "Digital Signature", "Subject Key Identifier",
            "Authority Key Identifier", "prime256v1", "ecdsa-with-SHA256",
        ] {
            #expect(server.contains(text))
        }
        let ca = try run(["openssl", "x509", "-noout", "-text", "-in", made.ca]).output
        for text in [
            "CA:TRUE, pathlen:0", "Certificate Sign, CRL Sign", "Subject Key Identifier",
            "Authority Key Identifier", "Permitted:", "DNS:localhost",
        ] {
            #expect(ca.contains(text))
        }
        let chain = try String(contentsOfFile: made.certificate, encoding: .utf8)
        #expect(chain.hasSuffix(try String(contentsOfFile: made.ca, encoding: .utf8)))
    }

    /// The CA's key is stolen: clients reject a certificate that it signs for another host.
    @Test func theAuthorityCannotVouchForAnotherHost() throws {
        let place = Place()
        let made = try place.ensure(now)
        let base = place.path + "/evil"
        try "subjectAltName=DNS:example.com\nextendedKeyUsage=serverAuth\n".write(
            toFile: base + ".ext", atomically: true, encoding: .utf8)
        let request = try run([
            "openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-subj", "/CN=example.com", "-keyout", base + ".key", "-out", base + ".csr",
        ])
        try #require(request.exit == .status(0))
        let issued = try run([
            "openssl", "x509", "-req", "-in", base + ".csr", "-CA", made.ca, "-CAkey", place.caKey,
            "-CAcreateserial", "-extfile", base + ".ext", "-out", base + ".pem",
        ])
        try #require(issued.exit == .status(0))
        let answer = try run(["openssl", "verify", "-CAfile", made.ca, base + ".pem"])
        #expect(answer.output.contains("permitted subtree violation"))
    }

    @Test func pythonShakesHandsWithTheServer() throws {
        let place = Place()
        let made = try place.ensure(now)
        let script = """
            import socket, ssl, sys, threading
            server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            server.load_cert_chain(sys.argv[2], sys.argv[3])
            client = ssl.create_default_context(cafile=sys.argv[1])
            client.verify_flags |= ssl.VERIFY_X509_STRICT
            listener = socket.create_server(("127.0.0.1", 0))
            def serve():
                for _ in range(2):
                    with server.wrap_socket(listener.accept()[0], server_side=True) as peer:
                        peer.sendall(b"ok")
            thread = threading.Thread(target=serve)
            thread.start()
            for name in ("localhost", "127.0.0.1"):
                raw = socket.create_connection(listener.getsockname(), 10)
                with client.wrap_socket(raw, server_hostname=name) as peer:
                    print(name, peer.recv(2).decode())
            thread.join(10)
            """
        let answer = try run(["python3", "-c", script, made.ca, made.certificate, made.key])
        #expect(answer.output == "localhost ok\n127.0.0.1 ok\n")
    }

    @Test func privateFilesAreTheOwnersOnly() throws {
        let place = Place()
        _ = try place.ensure(now)
        #expect(try place.mode("certs") == 0o700)
        #expect(try place.mode("certs/ca.key") == 0o600)
        #expect(try place.mode("certs/server.key") == 0o600)
        #expect(try place.mode("certs/server.pem") == 0o600)
        #expect(try place.mode("certs/ca.pem") == 0o644)
        #expect(try Set(place.contents().keys) == ["ca.key", "ca.pem", "server.key", "server.pem"])
    }

    @Test func aSecondCallChangesNothing() throws {
        let place = Place()
        let first = try place.ensure(now)
        let before = try place.contents()
        #expect(try place.ensure(now + 366 * day) == first)
        #expect(try place.contents() == before)
    }

    @Test func aServerCertificateThatEndsSoonIsRenewedUnderTheSameAuthority() throws {
        let place = Place()
        let before: [String: Data]
        _ = try place.ensure(now - 368 * day)
        before = try place.contents()
        let made = try place.ensure(now)
        let after = try place.contents()
        #expect(after["server.pem"] != before["server.pem"])
        #expect(after.filter { $0.key != "server.pem" } == before.filter { $0.key != "server.pem" })
        #expect(try verify(made, name: []).hasSuffix(": OK\n"))
    }

    @Test func withoutTheAuthoritysKeyACertificateIsKeptUntilItEnds() throws {
        let place = Place()
        _ = try place.ensure(now)
        try FileManager.default.removeItem(atPath: place.caKey)
        let before = try place.contents()
        _ = try place.ensure(now + 390 * day)
        #expect(try place.contents() == before)
        #expect(fault(place, now + 400 * day) == .noSigningKey)
        #expect(try place.contents() == before)
    }

    /// Each state that an interrupted call leaves behind.
    @Test(arguments: [
        ["ca.pem", "server.key", "server.pem"], ["server.key", "server.pem"], ["server.pem"],
    ])
    func whatIsMissingIsMadeAndWhatIsThereIsKept(missing: [String]) throws {
        let place = Place()
        _ = try place.ensure(now)
        let before = try place.contents()
        for name in missing {
            try FileManager.default.removeItem(atPath: place.path + "/certs/" + name)
        }
        try Data("left over".utf8).write(
            to: URL(fileURLWithPath: place.path + "/certs/server.pem.tmp"))
        let made = try place.ensure(now)
        let after = try place.contents()
        for name in before.keys where !missing.contains(name) {
            #expect(after[name] == before[name])
        }
        #expect(after.keys.sorted() == before.keys.sorted())
        #expect(try verify(made, name: []).hasSuffix(": OK\n"))
    }

    @Test func anAuthoritySomebodyElseMadeIsUsedAndNeverReplaced() throws {
        let (place, other) = (Place(), Place())
        _ = try other.ensure(now)
        _ = try place.ensure(now)
        for name in ["ca.pem", "ca.key"] {
            try FileManager.default.removeItem(atPath: "\(place.path)/certs/\(name)")
            try FileManager.default.copyItem(
                atPath: "\(other.path)/certs/\(name)", toPath: "\(place.path)/certs/\(name)")
        }
        let made = try place.ensure(now)
        #expect(try place.contents()["ca.pem"] == other.contents()["ca.pem"])
        #expect(try verify(made, name: []).hasSuffix(": OK\n"))
    }

    @Test func whatIsWrongWithTheAuthorityIsSaidAndNothingIsReplaced() throws {
        let (place, other) = (Place(), Place())
        _ = try other.ensure(now)
        let made = try place.ensure(now)
        func expect(_ code: TLSError.Code, at moment: Int64) throws {
            let before = try place.contents()
            #expect(fault(place, moment) == code)
            #expect(try place.contents() == before)
        }
        try expect(.expired, at: now + 3651 * day)
        try expect(.expired, at: now - 2 * day)
        try FileManager.default.removeItem(atPath: place.caKey)
        try FileManager.default.copyItem(atPath: other.caKey, toPath: place.caKey)
        try expect(.unusable, at: now)
        try "no certificate".write(toFile: made.ca, atomically: false, encoding: .utf8)
        try expect(.notPEM, at: now)
        try FileManager.default.removeItem(atPath: made.ca)
        try FileManager.default.copyItem(atPath: made.certificate, toPath: made.ca)
        try expect(.unusable, at: now)
    }

    @Test func aDirectoryThatCannotBeMadeIsNamed() throws {
        let path = "/proc/no-such-place"
        let error = #expect(throws: TLSError.self) {
            try DevelopmentCertificates.ensure(in: path, now: now)
        }
        #expect(error?.code == .unwritable)
        #expect(error?.message.contains(path) == true)
    }

    private func fault(_ place: Place, _ now: Int64) -> TLSError.Code? {
        do {
            _ = try place.ensure(now)
            return nil
        } catch {
            return (error as? TLSError)?.code
        }
    }
}
