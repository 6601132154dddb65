import Foundation
import GatewayTestSupport
import WidgetModel

/// A gateway with a configuration file, whose metrics a test reads.
struct WatchedGateway {
    let folder: String
    let gateway: GatewayProcess
    /// Its admin port, on loopback.
    let port: UInt16
    let admin: TestHTTP

    private static let repository = #filePath.replacing(
        "/Tests/SystemTests/Process/WatchedGateway.swift", with: "")

    /// - Parameters:
    ///   - options: Lines of configuration in addition to the usual ones.
    ///   - days: The validity of its certificate, in days.
    init(_ options: [String] = [], days: Int = 60) throws {
        folder = try GatewayProcess.temporaryDirectory()
        let certificates = folder + "/certs"
        try FileManager.default.createDirectory(
            atPath: certificates, withIntermediateDirectories: true)
        try Self.makeCertificates(in: folder, days: days)
        try Self.write(options, in: folder)
        port = try GatewayProcess.freePort()
        gateway = try GatewayProcess(
            data: folder, configuration: folder + "/gateway.yaml", admin: "127.0.0.1:\(port)")
        admin = gateway.adminHTTP()
    }

    /// Makes a server certificate; the authority stays the same.
    static func makeCertificates(in folder: String, days: Int) throws {
        let (exit, output) = try GatewayProcess.run(
            ["\(Self.repository)/Certs/make-development", folder + "/certs", "--days", "\(days)"],
            program: "/usr/bin/env")
        guard exit == .status(0) else { throw TestFailure(output) }
    }

    /// Writes or rewrites the configuration.
    static func write(_ options: [String], in folder: String) throws {
        let lines = [
            "publicURL: https://gateway.test", "localIssuer: true",
            "tls: { certificate: \(folder)/certs/server.pem, key: \(folder)/certs/server.key }",
        ]
        try (lines + options).joined(separator: "\n")
            .write(toFile: folder + "/gateway.yaml", atomically: true, encoding: .utf8)
    }
}
