import Foundation

/// A certificate as Apple makes them for the push service, but of another authority.
package struct PushCertificate: Sendable {
    /// The certificate's file.
    package let certificate: String
    /// The key's file.
    package let key: String

    /// Makes a certificate for an app with the `openssl` command.
    ///
    /// - Parameters:
    ///   - ca: The authority's certificate, `ca.pem`; its key is `ca.key` beside it.
    ///   - days: How long it is valid.
    /// - Throws: ``TestFailure`` with what the command said.
    package init(app: String, ca: String, days: Int = 2) throws {
        let directory = try GatewayProcess.temporaryDirectory()
        (certificate, key) = (directory + "/push.pem", directory + "/push.key")
        let request = directory + "/push.csr"
        try Self.openssl([
            "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
            "/UID=\(app)/CN=Apple Push Services: \(app)", "-keyout", key, "-out", request,
        ])
        let caKey = URL(fileURLWithPath: ca).deletingLastPathComponent().path + "/ca.key"
        try Self.openssl([
            "x509", "-req", "-in", request, "-CA", ca, "-CAkey", caKey, "-set_serial", "7",
            "-days", "\(days)", "-out", certificate,
        ])
    }

    private static func openssl(_ arguments: [String]) throws {
        let (exit, output) = try GatewayProcess.run(arguments, program: "/usr/bin/openssl")
        guard exit == .status(0) else { throw TestFailure(output) }
    }
}
