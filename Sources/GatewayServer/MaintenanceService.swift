import Foundation
import GatewayCore
import GatewayEngine
import GatewayOperations
import GatewaySigning
import GatewayStorage
import GatewayTLS
import Logging
import ServiceLifecycle

/// Periodic maintenance: retention, removal of unseen clients, and key rotation.
struct MaintenanceService: Service {
    /// The interval between two runs.
    private static let interval = Duration.seconds(30)
    /// The number of runs in an hour: one of them writes a row for every client with a stream.
    private static let looksAtStreams = 120

    let configuration: CurrentConfiguration
    private let engine: Engine
    private let registry: Registry
    private let clients: ClientDirectory
    private let clock: GatewayClock
    let keys: KeyService
    let signer: NotificationSigner
    /// The keys of session tickets that nodes share.
    private let tickets: TicketKeys?
    let logger: Logger
    let keysChanged: @Sendable () -> Void

    init(
        configuration: CurrentConfiguration, engine: Engine, keys: KeyService,
        signer: NotificationSigner, tickets: TicketKeys?, logger: Logger,
        keysChanged: @escaping @Sendable () -> Void
    ) {
        self.configuration = configuration
        self.engine = engine
        registry = engine.registry
        clients = engine.clients
        clock = engine.clock
        self.keys = keys
        self.signer = signer
        self.tickets = tickets
        self.logger = logger
        self.keysChanged = keysChanged
    }

    func run() async throws {
        await lookAtKeys()
        try? await cancelWhenGracefulShutdown {
            var looks = 0
            while true {
                try await Task.sleep(for: Self.interval)
                await self.look(atStreams: looks % Self.looksAtStreams == 0)
                looks += 1
            }
        }
        if leads { await noteSeen(withStreams: true) }
    }

    /// Whether this gateway maintains the log: of several, the one that leads does.
    private var leads: Bool { engine.leader?.isHere ?? true }

    /// Makes the changes of the keys that are due; at a node that does not lead, those of the leader.
    func lookAtKeys() async {
        do {
            let rings = engine.leader.map { _ in SharedKeyRings(configuration.value) }
            let leads = leads
            if !leads { try rings?.copy(from: engine.store) }
            // Nothing is ever due at the earliest time.
            let now = leads ? clock.wallSeconds() : .min
            if try keys.advance(now: now, hasWebhooks: configuration.value.push.isActive) {
                signer.use(keys.notificationSigner)
                keysChanged()
                logger.notice("the signing keys changed")
            }
            if leads { try await rings?.publish(to: engine) }
            try tickets?.follow(Array(engine.store.secret), now: clock.wallSeconds())
        } catch {
            logger.error("the key rings cannot be read", metadata: ["error": "\(error)"])
        }
    }

    private func look(atStreams: Bool) async {
        await lookAtKeys()
        guard leads else { return }
        do {
            let store = engine.store
            let (head, floor) = (store.head, store.floor)
            try await clients.confirmUnowed(below: floor + (head - floor) / 2)
            try await prune()
            try await pruneAttempts()
            await noteSeen(withStreams: atStreams)
            guard atStreams else { return }
            let day: Int64 = 86_400_000
            let unseenSince =
                clock.wallMilliseconds() - Int64(configuration.value.clientDays) * day
            while try await clients.removeUnseen(since: unseenSince) {}
        } catch {
            logger.error("retention failed", metadata: ["error": "\(error)"])
        }
    }

    private func prune() async throws {
        let rowsPerJob = 5_000
        let configuration = configuration.value
        let acceptedBefore =
            clock.wallMilliseconds() - configuration.retentionSeconds * 1000
        let keep = configuration.retentionChanges
        while true {
            let before = engine.store.floor
            let floor = try await engine.log.write(
                for: .gateway, cost: 1024, freesSpace: true
            ) { transaction in
                try transaction.prune(
                    acceptedBefore: acceptedBefore, keepRows: keep, limit: rowsPerJob)
            }
            guard let floor, floor >= before + UInt64(rowsPerJob) else { return }
        }
    }

    private func pruneAttempts() async throws {
        let rowsPerJob = 5_000
        let configuration = configuration.value
        let endedBefore =
            clock.wallMilliseconds() - configuration.push.attemptSeconds * 1000
        let keep = configuration.push.attemptRows
        while true {
            let count = try await engine.log.write(
                for: .gateway, cost: 1024, freesSpace: true
            ) { transaction in
                try transaction.prunePushAttempts(
                    endedBefore: endedBefore, keepRows: keep, limit: rowsPerJob)
            }
            guard count >= rowsPerJob else { return }
        }
    }

    /// Records the clients seen since the last run, so that they are not removed as unseen.
    private func noteSeen(withStreams: Bool) async {
        let seen = registry.takeSeen(now: clock.wallMilliseconds(), withStreams: withStreams).map {
            (key: RegistrationKey(app: $0.key.app, client: $0.key.client), at: $0.at)
        }
        let batch = 500
        for start in stride(from: 0, to: seen.count, by: batch) {
            let keys = Array(seen[start..<min(start + batch, seen.count)])
            do {
                try await engine.log.write(for: .gateway, cost: 64 * keys.count) { transaction in
                    try transaction.touch(keys)
                }
            } catch {
                logger.warning("cannot record client activity", metadata: ["error": "\(error)"])
            }
        }
    }
}

extension TicketKeys {
    /// Adds the keys that all nodes with `secret` have: those of the present period, the one before
    /// and the one after.
    func follow(_ secret: [UInt8], now: Int64) throws(SigningError) {
        let period = TicketKeyRing.period
        var keys: [TicketKey] = []
        for number in now / period - 1...now / period + 1 {
            let bytes = try derivedKey(
                from: secret, for: "session tickets \(number)", count: TicketKey.byteCount)
            let key = TicketKey(begins: number * period) { output in
                output.copyBytes(from: bytes)
                return true
            }
            if let key { keys.append(key) }
        }
        add(keys)
    }
}
