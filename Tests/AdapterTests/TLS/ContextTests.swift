import Foundation
import GatewayTLS
import GatewayTestSupport
import Testing

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
