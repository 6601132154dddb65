import Foundation
import GatewayTestSupport
import Testing

/// Configurations that a gateway must refuse, with helpful messages.
@Suite("Configuration faults")
struct ConfigurationAttackTests {
    /// Runs `body` with a directory of an authority's files, which is removed at the end.
    private func inDirectory(
        _ body: (_ directory: String, _ authority: TestAuthority) async throws -> Void
    ) async throws {
        let directory = try GatewayProcess.temporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try await body(directory, try TestAuthority(in: directory))
    }

    private func serve(
        _ directory: String, _ configuration: String
    ) async throws -> (exit: GatewayProcessExit, output: String) {
        let file = "\(directory)/gateway.yaml"
        try configuration.write(toFile: file, atomically: true, encoding: .utf8)
        return try await elsewhere {
            try GatewayProcess.run(["serve", "--config", file])
        }
    }

    private func working(_ directory: String, _ authority: TestAuthority) -> String {
        """
        data: \(directory)/data
        listen: 127.0.0.1:0
        admin: 127.0.0.1:0
        localIssuer: true
        tls:
          certificate: \(authority.server.certificate)
          key: \(authority.server.key)

        """
    }

    @Test("An unknown key is refused with the nearest name")
    func unknownKey() async throws {
        try await inDirectory { directory, authority in
            let (exit, output) = try await serve(
                directory, working(directory, authority) + "streams: { perClent: 4 }\n")
            #expect(exit == .status(78))
            #expect(output.contains("streams.perClent"))
            #expect(output.contains("did you mean `streams.perClient`?"))
        }
    }

    @Test("Every fault is listed at once, each with its key")
    func everyFault() async throws {
        try await inDirectory { directory, authority in
            let (exit, output) = try await serve(
                directory,
                """
                listen: nowhere
                threads: many
                publicURL: http://gateway.example
                localIssuer: perhaps
                tls: { clientCertificates: sometimes }
                signing: { algorithm: RS256, lifetime: long }
                limits: { eventBytes: -1 }
                issuers: [{ iss: a, apps: [b], scopes: [chnges:write], keys: /nowhere }]
                colour: red
                """)
            #expect(exit == .status(78))
            for key in [
                "data", "listen", "threads", "publicURL", "localIssuer", "tls.certificate",
                "tls.key", "tls.clientCertificates", "signing.algorithm", "signing.lifetime",
                "limits.eventBytes", "issuers.0.scopes", "issuers.0.keys", "colour",
            ] {
                #expect(output.contains("\(key): "), "\(key)")
            }
            #expect(output.contains("did you mean changes:write"))
        }
    }

    @Test("Development mode refuses to listen beyond loopback", arguments: ["0.0.0.0:0", "[::]:0"])
    func developmentEverywhere(_ address: String) async throws {
        let data = try GatewayProcess.temporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: data) }
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
        "A certificate that cannot be read, is none, or does not match its key is refused",
        arguments: [
            "missing", "garbage", "mismatch", "directory",
        ])
    func wrongCertificate(_ what: String) async throws {
        try await inDirectory { directory, authority in
            var text = working(directory, authority)
            let garbage = "\(directory)/garbage.pem"
            try "-----BEGIN CERTIFICATE-----\nAAAA\n".write(
                toFile: garbage, atomically: true, encoding: .utf8)
            let replacement =
                switch what {
                case "missing": "\(directory)/missing.pem"
                case "garbage": garbage
                case "mismatch": authority.ca.certificate
                default: directory
                }
            text = text.replacingOccurrences(
                of: authority.server.certificate, with: replacement)
            let (exit, output) = try await serve(directory, text)
            #expect(exit != .status(0))
            #expect(output.contains(replacement), "it names the file")
            #expect(!output.contains("Fatal"))
        }
    }

    @Test(
        "Every wrong file of pushes is listed with its option, and nothing is served",
        arguments: ["check-config", "serve"])
    func wrongPushFiles(_ command: String) async throws {
        try await inDirectory { directory, authority in
            let file = "\(directory)/gateway.yaml"
            try
                (working(directory, authority) + """
                    apns:
                      - { app: a, team: TEAM123456, keyID: KEY1234567, key: \(authority.server.certificate) }
                      - app: b
                        certificate: \(authority.server.certificate)
                        certificateKey: \(directory)/missing.key
                    push: { apnsCA: \(authority.server.key) }
                    webhooks: { enabled: true, allowedRanges: [10.0.0.0/64], ca: \(directory) }
                    """).write(toFile: file, atomically: true, encoding: .utf8)
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

    @Test(
        "A configuration file that is none is refused",
        arguments: [
            "", "just text", "[1, 2]", "a: [", "data: {", "\u{0}",
            "listen: 127.0.0.1:0\nlisten: 127.0.0.1:1",
        ])
    func noConfiguration(_ text: String) async throws {
        try await inDirectory { directory, _ in
            let (exit, output) = try await serve(directory, text)
            #expect(exit == .status(78))
            #expect(output.contains("configuration is invalid"))
        }
    }
}
