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
        directory = NSTemporaryDirectory() + "/gateway-tls-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
        ExitActions.add { [directory] in
            try? FileManager.default.removeItem(atPath: directory)
        }
        try selfSigned("ca", "/CN=Test CA")
        try selfSigned("stranger", "/CN=Stranger")
        try issued("server", "/CN=server", "subjectAltName=DNS:localhost,IP:127.0.0.1", days: 10)
        try issued("other", "/CN=other", "subjectAltName=DNS:localhost,IP:127.0.0.1", days: 20)
        try issued(
            "client", "/CN=client",
            "subjectAltName=URI:spiffe://test/backend,DNS:ignored,URI:urn:example:second", days: 10)
        try Self.run(
            "ec", "-in", "\(directory)/server.key", "-aes128", "-passout", "pass:secret", "-out",
            "\(directory)/sealed.key")
    }

    private func selfSigned(_ name: String, _ subject: String) throws {
        try Self.run(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-days", "30", "-subj", subject, "-keyout", "\(directory)/\(name).key", "-out",
            "\(directory)/\(name).pem")
    }

    private func issued(_ name: String, _ subject: String, _ extensions: String, days: Int) throws {
        let base = "\(directory)/\(name)"
        try extensions.write(toFile: base + ".ext", atomically: true, encoding: .utf8)
        try Self.run(
            "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
            subject, "-keyout", base + ".key", "-out", base + ".csr")
        try Self.run(
            "x509", "-req", "-in", base + ".csr", "-CA", ca, "-CAkey", "\(directory)/ca.key",
            "-CAcreateserial", "-days", String(days), "-extfile", base + ".ext", "-out",
            base + ".pem")
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
        try Self.run(
            "ca", "-config", base + ".cnf", "-gencrl", "-crldays", "1", "-out", empty)
        try Self.run(
            "ca", "-config", base + ".cnf", "-gencrl", "-crl_lastupdate", "20200101000000Z",
            "-crl_nextupdate", "20200102000000Z", "-out", expired)
        try Self.run("ca", "-config", base + ".cnf", "-revoke", client)
        try Self.run(
            "ca", "-config", base + ".cnf", "-gencrl", "-crldays", "1", "-out", withClient)
        return (empty, withClient, expired)
    }

    struct CommandFailed: Error {
        let output: String
    }

    /// Runs `openssl` with `input` as its standard input, and returns its output.
    @discardableResult
    static func run(_ arguments: String..., input: String = "", mayFail: Bool = false) throws
        -> String
    {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["openssl"] + arguments
        let output = Pipe()
        let standardInput = Pipe()
        process.standardOutput = output
        process.standardError = output
        process.standardInput = standardInput
        try process.run()
        standardInput.fileHandleForWriting.write(Data(input.utf8))
        try standardInput.fileHandleForWriting.close()
        let text = String(
            decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard mayFail || process.terminationStatus == 0 else { throw CommandFailed(output: text) }
        return text
    }
}
