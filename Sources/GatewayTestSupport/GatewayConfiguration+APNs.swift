import APNsSimulator
import GatewaySigning
import GatewayTLS

extension GatewayConfiguration {
    /// The team of the simulated APNs.
    package static let team = "TEAM123456"

    /// Starts a simulated APNs with occasional `faults`. `keys` are the ids of the team's keys;
    /// each key is written to `ID.p8`.
    package func startAPNs(
        keys: [String] = ["KEY1234567"], faults: [PushFault] = [], seed: UInt64 = 1
    ) throws -> APNsServer {
        var terms = SimulatedAPNs.Terms()
        terms.environment = .production
        (terms.faults, terms.seed) = (faults, seed)
        for id in keys {
            let key = try SigningKey(generating: .es256)
            try key.save(to: "\(folder)/\(id).p8")
            terms.keys.append(try ProviderKey(id: id, team: Self.team, key: key.publicKey))
        }
        return try APNsServer(
            terms,
            APNsServer.Settings(
                certificate: .file(certificates.certificate), key: .file(certificates.key)))
    }

    /// Returns an app's part of the configuration.
    package func apnsSection(
        of app: String, key: String = "KEY1234567", also more: String = ""
    ) -> String {
        "  - { app: \(app), team: \(Self.team), keyID: \(key), key: \(folder)/\(key).p8,"
            + " environment: production\(more) }"
    }

    /// Writes the file, for pushes through an APNs at `port` of this machine. `sections` are the
    /// apps' parts, `options` further lines of `push`, and `lines` further lines.
    package func writePush(
        _ sections: [String], port: Int, options: [String] = [], also lines: [String] = []
    ) throws {
        let push = ["apnsProduction: 127.0.0.1:\(port)", "apnsCA: \(certificates.ca)"] + options
        try write(
            ["publicURL: https://gateway.test"] + lines
                + (sections.isEmpty ? [] : ["apns:"] + sections)
                + ["push:"] + push.map { "  \($0)" })
    }
}
