import APNsSimulator
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
    var folder: String { configuration.folder }
    private let configuration: GatewayConfiguration
    private let clock: HeldClock?

    /// - Parameters:
    ///   - faults: The occasional faults of the push service.
    ///   - options: Lines of the push configuration in addition to the usual ones.
    ///   - more: Lines of the rest of the configuration.
    ///   - others: The ids of further keys that the push service knows.
    ///   - clock: The gateway's clock; a second passes with each look of ``until(_:_:)``.
    ///   - asProcess: Whether the gateway is a process of its own.
    init(
        faults: [PushFault] = [], seed: UInt64 = 1, options: [String] = [], more: [String] = [],
        others: [String] = [], clock: HeldClock? = nil, asProcess: Bool = false
    ) throws {
        self.clock = clock
        configuration = try GatewayConfiguration()
        apns = try configuration.startAPNs(
            keys: ["KEY1234567"] + others, faults: faults, seed: seed)
        try configuration.writePush(
            [configuration.apnsSection(of: Self.app)], port: apns.port, options: options,
            also: more)
        gateway = try configuration.start(asProcess: asProcess, clock: clock)
        game = try GameFixture(gateway)
    }

    /// Returns the app's part of the configuration.
    func section(key: String = "KEY1234567", also more: String = "") -> String {
        configuration.apnsSection(of: Self.app, key: key, also: more)
    }

    /// Rewrites the configuration.
    func write(
        _ sections: [String], options: [String] = [], also lines: [String] = []
    ) throws {
        try configuration.writePush(sections, port: apns.port, options: options, also: lines)
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
            registration(showing: characters, delivery: addresses(pushToken: token)))
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
    func until(_ what: String, _ holds: (PushRecord) -> Bool) async throws {
        try await apns.until(
            what, of: gateway,
            tick: { if let clock { clock.advance(to: clock.now + 1_000) } }, holds)
    }

    /// Returns what the gateway says of a client.
    func explained(_ client: String) throws -> JSONObject {
        try gateway.http().explained(client, app: Self.app, token: backend)
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
