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

    private static let repository = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().path

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
        admin = TestHTTP(url: "http://127.0.0.1:\(port)", ca: certificates + "/ca.pem")
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

    /// Returns the page of metrics once the figures of event loops, which are up to a second old,
    /// are current.
    func page() throws -> MetricsHistory.Page {
        Thread.sleep(forTimeInterval: 1.2)
        return try metrics()
    }

    /// Returns the current page of metrics.
    func metrics() throws -> MetricsHistory.Page {
        MetricsHistory.page(try admin.request("GET", "/metrics").text)
    }

    /// Returns the page as soon as it meets a condition.
    func page(
        within seconds: Int = 60, when isRight: (MetricsHistory.Page) -> Bool
    ) throws -> MetricsHistory.Page {
        for _ in 0..<seconds {
            let page = try page()
            if isRight(page) { return page }
        }
        throw TestFailure("the metrics stay as they are: \(gateway.standardErrorTail)")
    }

    func remove() {
        gateway.kill()
        try? FileManager.default.removeItem(atPath: folder)
    }
}
