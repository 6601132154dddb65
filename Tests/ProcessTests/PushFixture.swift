import APNsSimulator
import Foundation
import GatewaySigning
import GatewayTLS
import GatewayTestSupport
import WidgetModel

/// A gateway, and a push service that behaves and fails like APNs.
final class PushFixture: Sendable {
    static let app = GameFixture.app

    let gateway: any TestGateway
    let apns: APNsServer
    let game: GameFixture
    var backend: String { game.backend }
    /// The directory of its keys and its configuration.
    let folder: String
    private let configuration: GatewayConfiguration
    private let pushing: [String]
    private let clock: HeldClock?

    /// - Parameters:
    ///   - faults: The occasional faults of the push service.
    ///   - options: Lines of the push configuration in addition to the usual ones.
    ///   - more: Lines of the rest of the configuration.
    ///   - others: Names of further keys that the push service knows; each is written to
    ///     `NAME.p8`.
    ///   - clock: The gateway's clock; a second passes with each look of ``until(_:_:)``.
    ///   - asProcess: Whether the gateway is a process of its own.
    init(
        faults: [PushFault] = [], seed: UInt64 = 1, options: [String] = [], more: [String] = [],
        others: [String] = [], clock: HeldClock? = nil, asProcess: Bool = false
    ) throws {
        self.clock = clock
        configuration = try GatewayConfiguration()
        let (data, made) = (configuration.folder, configuration.certificates)
        var terms = SimulatedAPNs.Terms()
        terms.environment = .production
        for (id, file) in [("KEY1234567", "apns")] + others.map({ ($0, $0) }) {
            let key = try SigningKey(generating: .es256)
            try key.save(to: "\(data)/\(file).p8")
            terms.keys.append(try ProviderKey(id: id, team: "TEAM123456", key: key.publicKey))
        }
        terms.faults = faults
        terms.seed = seed
        apns = try APNsServer(
            terms,
            APNsServer.Settings(certificate: .file(made.certificate), key: .file(made.key)))
        folder = data
        pushing = ["apnsProduction: 127.0.0.1:\(apns.port)", "apnsCA: \(made.ca)"]
        try configuration.write(
            Self.lines([Self.section(in: data)], push: pushing + options, others: more))
        gateway = try configuration.start(asProcess: asProcess, clock: clock)
        game = try GameFixture(gateway)
    }

    /// Returns an app's part of the configuration.
    static func section(
        in folder: String, app: String = PushFixture.app, id: String = "KEY1234567",
        file: String = "apns.p8", also more: String = ""
    ) -> String {
        "  - { app: \(app), team: TEAM123456, keyID: \(id), key: \(folder)/\(file),"
            + " environment: production\(more) }"
    }

    private static func lines(
        _ sections: [String], push: [String], others: [String]
    ) -> [String] {
        let apns = sections.isEmpty ? [] : ["apns:"] + sections
        return ["publicURL: https://gateway.test"] + others + apns + ["push:"]
            + push.map { "  \($0)" }
    }

    /// Rewrites the configuration.
    func write(
        _ sections: [String], options: [String] = [], also lines: [String] = []
    ) throws {
        try configuration.write(
            Self.lines(sections, push: pushing + options, others: lines))
    }

    /// Makes the gateway read its configuration now.
    func reload() throws -> TestHTTPAnswer {
        try gateway.http().request(
            "POST", "/v1/configuration/reload",
            token: try gateway.token(app: "*", scope: "operator"))
    }

    /// Stops the gateway and the push service.
    func stop() async {
        gateway.terminate()
        await apns.stop()
    }

    /// Registers a device that shows characters.
    func register(
        _ client: String, _ characters: [String], token: String, on http: TestHTTP? = nil
    ) throws {
        let answer = try (http ?? gateway.http()).register(
            client, app: Self.app, token: backend,
            [
                "platform": "iOS",
                "widgets": .array(
                    characters.map { character in
                        [
                            "kind": "detail", "family": "systemSmall",
                            "parameters": ["character": .string(character)],
                        ]
                    }),
                "delivery": [
                    ["type": "stream"],
                    [
                        "type": "apns", "pushType": "widgets", "token": .string(token),
                        "environment": "production",
                    ],
                ],
            ])
        guard answer.status == 201 || answer.status == 200 else {
            throw TestFailure(answer.text)
        }
    }

    /// Posts one change of each character; returns once they are on disk.
    func change(_ characters: [String], run: String, on http: TestHTTP? = nil) throws {
        let events = characters.enumerated().map { place, character in
            event(source: run, id: "\(place)", entity: "Character", key: character)
        }
        let answer = try (http ?? gateway.http()).post(events, app: Self.app, token: backend)
        guard answer.status == 202 else { throw TestFailure(answer.text) }
    }

    /// Waits until a condition holds for the push service's record.
    func until(
        _ what: String, _ holds: (PushRecord) -> Bool
    ) async throws {
        try await eventually(
            what,
            details: {
                "\(apns.record.answers), \(apns.record.violations); \(gateway.standardErrorTail)"
            }
        ) {
            if let clock { clock.advance(to: clock.now + 1_000) }
            return holds(apns.record)
        }
    }

    /// Returns what the gateway says of a client.
    func explained(_ client: String) throws -> JSONObject {
        let answer = try gateway.http().request(
            "GET", "/v1/apps/\(Self.app)/clients/\(client)/explain", token: backend)
        guard answer.status == 200, let object = answer.json?.objectValue else {
            throw TestFailure(answer.text)
        }
        return object
    }

    /// Waits until the gateway says that the newest change of a client's first widget is withheld
    /// for `reason`.
    func untilWithheld(_ client: String, for reason: String) async throws {
        try await eventually("withheld for \(reason)") {
            let widget = try explained(client)["widgets"]?.arrayValue?.first?.objectValue
            return widget?["reason"]?.stringValue == reason
        }
    }
}
