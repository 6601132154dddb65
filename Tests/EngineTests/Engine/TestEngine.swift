import CatalogModel
import GatewayCore
import GatewaySigning
import GatewayStorage
import GatewayTLS
import GatewayTestSupport
import Logging
import NIOCore
import Synchronization
import WidgetModel

@testable import GatewayEngine
@testable import GatewayOperations

extension GatewayOperations.GatewayConfiguration {
    /// Returns the configuration of the development mode, which no files belong to.
    static func test(data: String = "/nonexistent") throws -> Self {
        let loopback = Address(host: "127.0.0.1", port: 0)
        return try development(data: data, listen: loopback, admin: loopback)
    }
}

extension Engine {
    /// Creates an engine with a signing key of its own, which logs nowhere.
    ///
    /// - Parameter clock: Its clock. Default: one that stands still.
    static func test(
        _ configuration: GatewayOperations.GatewayConfiguration, store: SQLiteStore,
        clock: GatewayClock = GatewayClock(now: { 0 }, wallMilliseconds: { 0 }, sleep: { _ in }),
        pushLoop: (any EventLoop)? = nil, loops: [any EventLoop] = [],
        metrics: GatewayMetrics = GatewayMetrics(), leader: (any LogLeader)? = nil
    ) throws -> Engine {
        let signer = NotificationSigner(
            issuer: "https://gateway.test", lifetime: 900,
            signer: JWSSigner.reloads(try SigningKey()), nonce: 7)
        return try Engine(
            configuration.engine, store: store, pushLoop: pushLoop,
            services: EngineServices(
                signer: signer, metrics: metrics, tlsSettings: TLSServerSettings(),
                eventLoops: loops, clock: clock,
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }),
            leader: leader)
    }

    /// Puts a catalog, as YAML, in force.
    func putCatalog(_ text: String, app: String) async throws {
        let catalog = try Catalog(JSONValue(yaml: text), app: app, limits: Limits())
        _ = try await changes.putCatalog(
            catalog, contentType: "application/yaml", body: Array(text.utf8), .none)
    }
}

/// Accepts every push, and records it.
final class RecordingSender: PushSender {
    private let clock: HeldClock
    private let endsActivities: Bool
    private let state = Mutex<(orders: [DuePush], times: [Int64])>(([], []))

    /// - Parameters:
    ///   - clock: The clock of the pushes' times.
    ///   - endsActivities: Whether each push ends its activity, unless it starts one.
    init(clock: HeldClock = HeldClock(), endsActivities: Bool = false) {
        (self.clock, self.endsActivities) = (clock, endsActivities)
    }

    var orders: [DuePush] { state.withLock { $0.orders } }
    /// The time of each push.
    var times: [Int64] { state.withLock { $0.times } }

    func send(_ order: DuePush, _ finished: @escaping @Sendable (PushReport) -> Void) {
        state.withLock {
            $0.orders.append(order)
            $0.times.append(clock.now)
        }
        var report = PushReport(result: .service(.delivered))
        report.ends = endsActivities && order.activity?.start == nil
        finished(report)
    }
}

extension StreamFixture {
    func startPushes(
        _ sender: any PushSender, mayPush: @escaping @Sendable () -> Bool = { true }
    ) throws -> PushLoop {
        guard let push = engine.push else { throw TestFailure("the gateway does not push") }
        push.start(
            PushLoop.Dependencies(
                store: store, drop: { _, _ in }, sender: { _, _ in sender },
                acceptTime: { _ in nil }, mayPush: mayPush))
        return push
    }
}
