import Foundation
import GatewayTestSupport
import Testing

/// Configurations that a gateway must refuse, with helpful messages.
@Suite("Configuration faults")
struct ConfigurationAttackTests {
    @Test("Development mode refuses to listen beyond loopback", arguments: ["0.0.0.0:0", "[::]:0"])
    func developmentEverywhere(_ address: String) async throws {
        let data = try GatewayProcess.temporaryDirectory()
        for flags in [
            ["--listen", address, "--admin", "127.0.0.1:0"],
            ["--listen", "127.0.0.1:0", "--admin", address],
        ] {
            let (exit, output) = try await elsewhere {
                try GatewayProcess.run(["serve", "--data", data] + flags)
            }
            #expect(exit == .status(78))
            #expect(output.contains("loopback"))
        }
    }

    @Test("A second gateway on the same data directory is refused, the first goes on")
    func secondGateway() async throws {
        let target = try await Target.shared()
        let data = target.process.data
        let (exit, output) = try await elsewhere {
            try GatewayProcess.run(
                ["serve", "--data", data, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
        }
        #expect(exit != .status(0))
        #expect(output.contains("use"), "it says that the directory is in use")
        #expect(try await target.bystander.trouble() == nil)
    }

    @Test(
        "Every wrong file of pushes is listed with its option, and nothing is served",
        arguments: ["check-config", "serve"])
    func wrongPushFiles(_ command: String) async throws {
        let directory = try GatewayProcess.temporaryDirectory()
        let server = try TestCertificate("server", in: directory)
        let (certificate, key) = (server.certificate, server.key)
        let file = "\(directory)/gateway.yaml"
        try """
        data: \(directory)/data
        listen: 127.0.0.1:0
        admin: 127.0.0.1:0
        localIssuer: true
        tls: { certificate: \(certificate), key: \(key) }
        apns:
          - { app: a, team: TEAM123456, keyID: KEY1234567, key: \(certificate) }
          - { app: b, certificate: \(certificate), certificateKey: \(directory)/missing.key }
        push: { apnsCA: \(key) }
        webhooks: { enabled: true, allowedRanges: [10.0.0.0/64], ca: \(directory) }
        """.write(toFile: file, atomically: true, encoding: .utf8)
        let (exit, output) = try await elsewhere {
            try GatewayProcess.run([command, "--config", file])
        }
        #expect(exit == .status(78))
        for option in [
            "apns.0.key", "apns.1.certificateKey", "push.apnsCA", "webhooks.allowedRanges",
            "webhooks.ca",
        ] {
            #expect(output.contains("\(option): "), "\(option): \(output)")
        }
        #expect(!FileManager.default.fileExists(atPath: "\(directory)/data"))
    }
}
