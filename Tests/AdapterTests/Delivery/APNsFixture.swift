import APNsSimulator
import CurlMulti
import Foundation
import GatewayCore
import GatewaySigning
import GatewayTLS
import GatewayTestSupport
import Synchronization
import Testing
import WidgetModel

@testable import GatewayDelivery

/// A clock for both sides, which can be advanced and may run faster than real time.
final class FastClock: Sendable {
    private let scale: Int64
    private let ahead = Atomic<Int64>(0)

    init(scale: Int64 = 1) { self.scale = scale }

    /// Advances the clock.
    func advance(minutes: Int64) { ahead.add(minutes * 60_000, ordering: .relaxed) }

    private var offset: Int64 { ahead.load(ordering: .relaxed) }

    var now: Int64 { GatewayClock.system.now() * scale + offset }
    var wall: Int64 { 1_800_000_000_000 + now % 100_000_000_000 }

    /// The clock as a pool uses it.
    var ofPool: GatewayClock {
        GatewayClock(
            now: { self.now }, wallMilliseconds: { self.wall },
            sleep: { [scale] moment in
                try? await Task.sleep(for: .microseconds((moment - self.now) * 1_000 / scale))
            })
    }
}

/// A simulated APNs over TLS, and a pool that pushes to it.
final class APNsFixture: Sendable {
    static let app = "com.mygame"
    static let token = String(repeating: "0a", count: 32)

    let clock: FastClock
    let server: APNsServer
    let ca: String
    let key: SigningKey
    let configuration: APNsPool.Configuration
    let pool: APNsPool

    init(
        clock: FastClock = FastClock(), certificate: Bool = false,
        terms: (inout SimulatedAPNs.Terms) -> Void = { _ in },
        pool change: (inout APNsPool.Configuration) -> Void = { _ in }
    ) throws {
        self.clock = clock
        let made = try DevelopmentCertificates.ensure(
            in: try GatewayProcess.temporaryDirectory(), now: Int64(Date().timeIntervalSince1970))
        ca = made.ca
        key = try SigningKey(generating: .es256)
        var simulated = SimulatedAPNs.Terms()
        simulated.keys = [try ProviderKey(id: "KEY1234567", team: "TEAM123456", key: key.publicKey)]
        terms(&simulated)
        var settings = APNsServer.Settings(
            certificate: .file(made.certificate), key: .file(made.key))
        settings.clock = { SimulatedAPNs.Moment(now: clock.now, wall: clock.wall) }
        if certificate { settings.clientCA = .file(made.ca) }
        server = try APNsServer(simulated, settings)
        let credential: APNsPool.Configuration.Credential
        if certificate {
            let push = try TestCertificate(pushesFor: Self.app, ca: made.ca)
            credential = .certificate(
                Array(try Data(contentsOf: URL(fileURLWithPath: push.certificate))),
                key: Array(try Data(contentsOf: URL(fileURLWithPath: push.key))))
        } else {
            credential = .key(.init(key, id: "KEY1234567", team: "TEAM123456"))
        }
        var configuration = APNsPool.Configuration(.sandbox, credential)
        configuration.origin = "https://127.0.0.1:\(server.port)"
        configuration.trust = .file(made.ca)
        configuration.clock = clock.ofPool
        (configuration.deadline, configuration.connectDeadline) = (
            Patience.duration, Patience.duration
        )
        change(&configuration)
        self.configuration = configuration
        pool = APNsPool(configuration)
    }

    func push(
        to token: String = APNsFixture.token, _ channel: APNsPushType = .widgets,
        app: String = APNsFixture.app
    ) throws -> APNsPush {
        let form = try APNsPushForm(channel, app: app)
        return try #require(APNsPush(token: token, form: form, registeredAt: clock.wall))
    }

    /// Pushes once, and returns the result.
    func send(
        to token: String = APNsFixture.token, _ channel: APNsPushType = .widgets,
        app: String = APNsFixture.app, push change: (inout APNsPush) -> Void = { _ in }
    ) async throws -> APNsPushResult {
        var push = try push(to: token, channel, app: app)
        change(&push)
        return await pool.push(push)
    }

    func device(_ token: String = APNsFixture.token) -> DeviceRecord {
        server.record.devices[token] ?? DeviceRecord()
    }

    func stop() async {
        await pool.drain()
        await server.stop()
    }
}
