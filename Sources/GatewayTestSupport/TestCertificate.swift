/// A certificate and its P-256 key, made with the `openssl` command.
package struct TestCertificate: Sendable {
    /// The certificate's file, `NAME.pem`.
    package let certificate: String
    /// The key's file, `NAME.key` beside it.
    package let key: String

    /// Makes a certificate; without an issuer it is an authority's own. The default of `subject` is
    /// the name; `alternativeNames` are such as `DNS:localhost,IP:127.0.0.1`; `days` is how long it
    /// is valid. Throws ``TestFailure`` with the command's output.
    package init(
        _ name: String, in directory: String, issuer: TestCertificate? = nil,
        subject: String? = nil, alternativeNames: String? = nil, days: Int = 2
    ) throws {
        (certificate, key) = ("\(directory)/\(name).pem", "\(directory)/\(name).key")
        var arguments = [
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-days", "\(days)", "-subj", subject ?? "/CN=\(name)", "-keyout", key, "-out",
            certificate,
        ]
        if let issuer {
            arguments += ["-CA", issuer.certificate, "-CAkey", issuer.key]
            arguments += ["-addext", "basicConstraints=critical,CA:FALSE"]
        }
        if let alternativeNames { arguments += ["-addext", "subjectAltName=\(alternativeNames)"] }
        try Self.openssl(arguments)
    }

    /// Makes a certificate like Apple's for the push service, of the authority whose certificate is
    /// `ca`, `ca.pem`, with its key `ca.key` beside it.
    package init(pushesFor app: String, ca: String, days: Int = 2) throws {
        try self.init(
            "push", in: GatewayProcess.temporaryDirectory(),
            issuer: TestCertificate(certificate: ca, key: "\(ca.dropLast(4)).key"),
            subject: "/UID=\(app)/CN=Apple Push Services: \(app)", days: days)
    }

    private init(certificate: String, key: String) {
        (self.certificate, self.key) = (certificate, key)
    }

    /// Runs `openssl`, and returns its standard output. Throws ``TestFailure`` with that output.
    @discardableResult
    package static func openssl(_ arguments: [String]) throws -> String {
        let (exit, output) = try GatewayProcess.run(arguments, program: "/usr/bin/openssl")
        guard exit == .status(0) else { throw TestFailure(output) }
        return output
    }
}
