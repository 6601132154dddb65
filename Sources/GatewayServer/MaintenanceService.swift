import Foundation
import GatewayCore
import GatewayEngine
import GatewayOperations
import GatewaySettings
import GatewayStorage
import Logging
import ServiceLifecycle
import WidgetModel

/// Periodic maintenance: retention, removal of unseen clients, and key rotation.
struct MaintenanceService: Service {
    /// The interval between two runs.
    private static let interval = Duration.seconds(30)

    let configuration: CurrentConfiguration
    /// `nil` if other nodes share the log: it is maintained in the database.
    private let embedded: Engine.EmbeddedStore?
    private let registry: Registry
    private let clients: ClientDirectory
    private let clock: GatewayClock
    let keys: KeyService
    let signer: NotificationSigner
    let logger: Logger
    let keysChanged: @Sendable () -> Void

    init(
        configuration: CurrentConfiguration, engine: Engine, keys: KeyService,
        signer: NotificationSigner, logger: Logger, keysChanged: @escaping @Sendable () -> Void
    ) {
        self.configuration = configuration
        embedded = engine.embedded
        registry = engine.registry
        clients = engine.clients
        clock = engine.clock
        self.keys = keys
        self.signer = signer
        self.logger = logger
        self.keysChanged = keysChanged
    }

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            while true {
                try await Task.sleep(for: Self.interval)
                await self.look()
            }
        }
        await noteSeen()
    }

    private func look() async {
        do {
            if try keys.advance(
                now: clock.wallSeconds(),
                hasWebhooks: configuration.value.push.hasWebhooks)
            {
                signer.use(keys.notificationSigner)
                keysChanged()
                logger.notice("the signing keys changed")
            }
        } catch {
            logger.error("the key rings cannot be read", metadata: ["error": "\(error)"])
        }
        guard let embedded else { return }
        let store = embedded.store
        do {
            let (head, floor) = (store.head, store.floor)
            try await clients.confirmUnowed(below: floor + (head - floor) / 2)
            try await prune(embedded)
            try await pruneAttempts(embedded.writer)
            await noteSeen()
            let day: Int64 = 86_400_000
            let unseenSince =
                clock.wallMilliseconds() - Int64(configuration.value.clientDays) * day
            while try await clients.removeUnseen(since: unseenSince) {}
        } catch {
            logger.error("retention failed", metadata: ["error": "\(error)"])
        }
    }

    private func prune(_ embedded: Engine.EmbeddedStore) async throws {
        let rowsPerJob = 5_000
        let configuration = configuration.value
        let acceptedBefore =
            clock.wallMilliseconds() - configuration.retentionSeconds * 1000
        let keep = configuration.retentionChanges
        while true {
            let before = embedded.store.floor
            let floor = try await embedded.writer.write(
                for: .gateway, cost: 1024, freesSpace: true
            ) { transaction in
                try transaction.prune(
                    acceptedBefore: acceptedBefore, keepRows: keep, limit: rowsPerJob)
            }
            guard let floor, floor >= before + UInt64(rowsPerJob) else { return }
        }
    }

    private func pruneAttempts(_ writer: LogWriter) async throws {
        let rowsPerJob = 5_000
        let configuration = configuration.value
        let endedBefore =
            clock.wallMilliseconds() - configuration.push.attemptSeconds * 1000
        let keep = configuration.push.attemptRows
        while true {
            let count = try await writer.write(
                for: .gateway, cost: 1024, freesSpace: true
            ) { transaction in
                try transaction.prunePushAttempts(
                    endedBefore: endedBefore, keepRows: keep, limit: rowsPerJob)
            }
            guard count >= rowsPerJob else { return }
        }
    }

    /// Records the clients seen since the last run, so that they are not removed as unseen.
    private func noteSeen() async {
        guard let writer = embedded?.writer else { return }
        let seen = registry.takeSeen(now: clock.wallMilliseconds()).map {
            (key: RegistrationKey(app: $0.key.app, client: $0.key.client), at: $0.at)
        }
        let batch = 500
        for start in stride(from: 0, to: seen.count, by: batch) {
            let keys = Array(seen[start..<min(start + batch, seen.count)])
            do {
                try await writer.write(for: .gateway, cost: 64 * keys.count) { transaction in
                    try transaction.touch(keys)
                }
            } catch {
                logger.warning("cannot record client activity", metadata: ["error": "\(error)"])
            }
        }
    }
}
