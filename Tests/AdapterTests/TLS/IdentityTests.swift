import COpenSSL
import Foundation
import GatewayTLS
import GatewayTestSupport
import Testing

@Suite(.serialized) struct IdentityTests {
    private let servers = TestServers()
    private let made = Certificates.made

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func aTicketResumesASession(version: Int32) throws {
        let server = try servers.start()
        let session = try sessionOfOneConnection(server, version)
        defer { SSL_SESSION_free(session) }
        let second = try server.client {
            $0.version = version
            $0.session = session
        }.handshake()
        try second.write([7])
        #expect(try second.read(1) == [7])
        #expect(second.isResumed)
        #expect(try server.connection(1).onLoop { $0.isResumed })
        #expect(try !server.connection(0).onLoop { $0.isResumed })
        let counts = server.counters.snapshot()
        #expect(counts.handshakesFull == 1 && counts.handshakesResumed == 1)
    }

    @Test func aNewContextTakesNoOldTickets() throws {
        let server = try servers.start()
        let session = try sessionOfOneConnection(server, TLS1_3_VERSION)
        defer { SSL_SESSION_free(session) }
        server.identity.replace(with: try TestServer.context())
        let second = try server.client { $0.session = session }.handshake()
        #expect(!second.isResumed)
    }

    private func sessionOfOneConnection(_ server: TestServer, _ version: Int32) throws
        -> OpaquePointer
    {
        let first = try server.client { $0.version = version }.handshake()
        // Reading also processes the ticket that TLS 1.3 sends after the handshake.
        try first.write([1, 2, 3])
        #expect(try first.read(3) == [1, 2, 3])
        first.sayGoodbye()
        return try #require(first.session)
    }

    @Test func aNewCertificateLeavesConnectionsAlone() throws {
        let server = try servers.start()
        let first = try server.client().handshake()
        #expect(first.serverName == "/CN=server")
        // With a choice of protocols, which is made from the context's own list.
        let waiting = try (0..<16).map { _ in
            try server.client { $0.protocols = ["h2", "http/1.1"] }
        }
        server.waitForAccepted(1 + waiting.count)
        server.identity.replace(
            with: try TLSContext(
                certificateChain: .file(made.other), privateKey: .file(made.otherKey)))
        let second = try server.client().handshake()
        #expect(second.serverName == "/CN=other")
        // Accepted before the change, so they keep the certificate that they started with.
        for client in waiting { #expect(try client.handshake().serverName == "/CN=server") }
        for client in [first, second] + waiting {
            try client.write([9, 9])
            #expect(try client.read(2) == [9, 9])
        }
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func theURIsOfAClientCertificateAreRead(version: Int32) throws {
        let server = try servers.start(
            TestServer.context {
                $0.clientCertificates = .required(authorities: .file(made.ca))
            })
        let uris = ["spiffe://test/backend", "urn:example:second"]
        let client = try server.client {
            $0.version = version
            $0.certificate = (made.client, made.clientKey)
        }.handshake()
        try client.write([1])
        #expect(try client.read(1) == [1])
        #expect(try server.connection().onLoop { $0.peerCertificateURIs } == uris)
        let session = try #require(client.session)
        defer { SSL_SESSION_free(session) }
        let again = try server.client {
            $0.version = version
            $0.certificate = (made.client, made.clientKey)
            $0.session = session
        }.handshake()
        #expect(again.isResumed)
        let connection = try server.connection(1)
        connection.seen.wait { $0.contains(.open(nil)) }
        #expect(try connection.onLoop { $0.peerCertificateURIs } == uris)
    }

    @Test func aRequiredCertificateMustBeThereAndTrusted() throws {
        let server = try servers.start(
            TestServer.context {
                $0.clientCertificates = .required(authorities: .file(made.ca))
            })
        let bare = try server.client()
        let stranger = try server.client {
            $0.certificate = (made.stranger, made.strangerKey)
        }
        for client in [bare, stranger] {
            // A TLS 1.3 client finishes before the server has checked the certificate, and learns
            // of it when it reads.
            #expect(throws: TestFailure.self) {
                try client.handshake()
                _ = try client.read(1)
            }
        }
        server.waitForCounts("two refusals") { $0.handshakesFailed[.certificate] == 2 }
        #expect(server.counters.snapshot().handshakesFull == 0)
    }

    @Test func anOptionalCertificateMayBeMissingButNotWrong() throws {
        let server = try servers.start(
            TestServer.context {
                $0.clientCertificates = .optional(authorities: .file(made.ca))
            })
        let bare = try server.client().handshake()
        try bare.write([1])
        #expect(try bare.read(1) == [1])
        #expect(try server.connection(0).onLoop { $0.peerCertificateURIs }.isEmpty)
        let known = try server.client {
            $0.certificate = (made.client, made.clientKey)
        }.handshake()
        try known.write([1])
        #expect(try known.read(1) == [1])
        #expect(try server.connection(1).onLoop { $0.peerCertificateURIs }.count == 2)
        let stranger = try server.client { $0.certificate = (made.stranger, made.strangerKey) }
        #expect(throws: TestFailure.self) {
            try stranger.handshake()
            _ = try stranger.read(1)
        }
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func `a revoked client certificate is refused`(version: Int32) throws {
        let lists = try made.revocationLists()
        func isAccepted(_ list: String) throws -> Bool {
            let server = try servers.start(
                TestServer.context {
                    $0.clientCertificates = .optional(authorities: .file(made.ca))
                    $0.revocationLists = .file(list)
                })
            // Whoever has no certificate is not concerned.
            let bare = try server.client { $0.version = version }.handshake()
            try bare.write([1])
            #expect(try bare.read(1) == [1])
            let client = try server.client {
                $0.version = version
                $0.certificate = (made.client, made.clientKey)
            }
            do {
                try client.handshake().write([1])
                return try client.read(1) == [1]
            } catch {
                server.waitForCounts("a refusal") { $0.handshakesFailed[.certificate] == 1 }
                return false
            }
        }
        #expect(try isAccepted(lists.empty))
        #expect(try !isAccepted(lists.withClient))
        #expect(try !isAccepted(lists.expired))
    }

    @Test func `a file without revocation lists is named`() {
        let error = #expect(throws: TLSError.self) {
            try TestServer.context {
                $0.clientCertificates = .optional(authorities: .file(made.ca))
                $0.revocationLists = .file(made.ca)
            }
        }
        #expect(error?.code == .notPEM && error?.message.contains(made.ca) == true)
    }

    @Test func aClientThatRefusesOurCertificateIsCounted() throws {
        let server = try servers.start()
        let client = try server.client()
        SSL_set_verify(client.ssl, SSL_VERIFY_PEER, nil)
        #expect(throws: TestFailure.self) { try client.handshake() }
        server.waitForCounts("a refusal") { $0.handshakesFailed[.certificate] == 1 }
    }
}

@Suite struct ContextTests {
    private let made = Certificates.made

    private func fault(
        _ chain: PEMSource, _ key: PEMSource,
        _ change: (inout TLSContextSettings) -> Void = { _ in }
    ) -> TLSError? {
        var settings = TLSContextSettings()
        change(&settings)
        do {
            _ = try TLSContext(certificateChain: chain, privateKey: key, settings: settings)
            return nil
        } catch {
            return error
        }
    }

    @Test func aMissingFileIsNamed() {
        let missing = made.directory + "/missing.pem"
        let certificate = fault(.file(missing), .file(made.serverKey))
        #expect(certificate?.code == .fileUnreadable)
        #expect(certificate?.message.contains(missing) == true)
        #expect(fault(.file(made.server), .file(missing))?.code == .fileUnreadable)
    }

    @Test func aDirectoryIsNoFile() {
        #expect(
            fault(.file(made.directory), .file(made.serverKey))?.code == .fileUnreadable)
    }

    @Test func somethingElseThanPEMIsNamed() throws {
        let path = made.directory + "/noise.pem"
        try "not PEM".write(toFile: path, atomically: true, encoding: .utf8)
        let certificate = fault(.file(path), .file(made.serverKey))
        #expect(certificate?.code == .notPEM)
        #expect(certificate?.message.contains(path) == true)
        let key = fault(.file(made.server), .file(path))
        #expect(key?.code == .notPEM)
        #expect(key?.message.contains(path) == true)
        #expect(fault(.text(""), .file(made.serverKey))?.code == .notPEM)
        // A key in place of the certificate, and the other way round.
        #expect(fault(.file(made.serverKey), .file(made.serverKey))?.code == .notPEM)
        #expect(fault(.file(made.server), .file(made.server))?.code == .notPEM)
    }

    @Test func aDamagedChainIsRefusedWhole() throws {
        let good = try String(contentsOfFile: made.server, encoding: .utf8)
        let bad = good + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        #expect(fault(.text(bad), .file(made.serverKey))?.code == .notPEM)
    }

    @Test func aKeyOfAnotherCertificateIsRefusedByName() {
        let error = fault(.file(made.server), .file(made.otherKey))
        #expect(error?.code == .keyMismatch)
        #expect(error?.message.contains(made.otherKey) == true)
        #expect(error?.message.contains(made.server) == true)
    }

    @Test func aKeyWithPassphraseIsRefusedWithoutAsking() {
        let error = fault(.file(made.server), .file(made.sealedKey))
        #expect(error?.code == .notPEM)
        #expect(error?.message.contains("passphrase") == true)
    }

    @Test func unknownSuitesAndProtocolsAreRefused() {
        let (chain, key) = (PEMSource.file(made.server), PEMSource.file(made.serverKey))
        #expect(fault(chain, key) { $0.suites = [] }?.code == .invalidSettings)
        #expect(fault(chain, key) { $0.suites = ["TLS_NONE"] }?.code == .invalidSettings)
        #expect(fault(chain, key) { $0.suitesTLS12 = ["NONE"] }?.code == .invalidSettings)
        #expect(fault(chain, key) { $0.applicationProtocols = [] }?.code == .invalidSettings)
        #expect(fault(chain, key) { $0.applicationProtocols = [""] }?.code == .invalidSettings)
        let long = String(repeating: "x", count: 256)
        #expect(fault(chain, key) { $0.applicationProtocols = [long] }?.code == .invalidSettings)
        #expect(
            fault(chain, key) { $0.clientCertificates = .required(authorities: .file("none")) }?
                .code == .fileUnreadable)
    }

    @Test func textInMemoryWorksAndTheEndOfTheCertificateIsTold() throws {
        let context = try TLSContext(
            certificateChain: .text(String(contentsOfFile: made.server, encoding: .utf8)),
            privateKey: .text(String(contentsOfFile: made.serverKey, encoding: .utf8)))
        let days = context.notAfter.timeIntervalSinceNow / 86_400
        #expect(days > 9.9 && days < 10.1)
        // The time in the certificate: in whole seconds, and always the same.
        let said = try TestCertificate.openssl([
            "x509", "-enddate", "-noout", "-in", made.server, "-dateopt", "iso_8601",
        ])
        let ends = context.notAfter.ISO8601Format().replacing("T", with: " ")
        #expect(said.contains("notAfter=\(ends)"))
        #expect(context.applicationProtocols == ["h2", "http/1.1"])
    }
}
