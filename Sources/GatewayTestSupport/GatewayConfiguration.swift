import Foundation
import GatewayTLS

/// The configuration file of a daemon, and the certificates that it names.
package struct GatewayConfiguration: Sendable {
    /// The directory of both.
    package let folder: String
    /// The certificates; made when missing.
    package let certificates: DevelopmentCertificates
    package var file: String { folder + "/gateway.yaml" }

    /// Makes certificates and writes the file, with `lines` beside those of ``write(_:)``. By
    /// default the folder is a new temporary one.
    package init(in folder: String? = nil, _ lines: [String] = []) throws {
        let folder = try folder ?? GatewayProcess.temporaryDirectory()
        self.folder = folder
        certificates = try DevelopmentCertificates.ensure(
            in: folder, now: Int64(Date().timeIntervalSince1970))
        try write(lines)
    }

    /// Writes the file, at first or anew: the certificates, the issuer of the `token` command, and
    /// further lines.
    package func write(_ lines: [String]) throws {
        let usual = [
            "tls: { certificate: \(certificates.certificate), key: \(certificates.key) }",
            "localIssuer: true",
        ]
        try (usual + lines).joined(separator: "\n")
            .write(toFile: file, atomically: true, encoding: .utf8)
    }
}
