import GatewayCore
import GatewayEngine
import GatewayPostgres
import GatewayRecords
import Synchronization
import WidgetModel

/// Applies the batches of the fleet's log on a node, in order: keeps its catalogs and the
/// registrations that it holds, and hands the entries to its event loops.
package final class FleetFollower: Sendable {
    private struct State {
        var application: LogApplication
        var waiting: [LogBatch] = []
        var isReading = false
        /// Whether a record could not be applied; nothing behind it is.
        var hasFailed = false
        /// The clients whose registrations this node is writing, with the number of writes.
        var expected: [ClientKey: Int] = [:]

        /// The batch to apply now.
        var next: LogBatch? { isReading || hasFailed ? nil : waiting.first }
    }

    /// The batch that was applied last.
    private struct Applied {
        var position: LogPosition
        /// The minute at which it was written; `nil` if this node did not read it.
        var minute: Int64?
    }

    /// Reports a row of a client that cannot be read.
    package typealias UnreadableRowReport = @Sendable (RegistrationKey, any Error) -> Void

    /// Reads rows on the primary.
    package typealias Read =
        @Sendable (RowReading, @escaping @Sendable (RowOutcome) -> Void) -> Void

    private let catalogs: AppCatalogs
    private let registry: Registry
    private let accepted: AcceptedChanges
    private let publisher: LogPublisher
    private let seal: RegistrationSeal
    private let hashes: FleetHashes
    /// `nil` where nothing is pushed.
    private let pushes: FleetPushes?
    private let history: BatchHistory
    private let clock: GatewayClock
    /// Reports a record that the node cannot apply: it must stop.
    private let onFailure: @Sendable (LogApplication.Unreadable) -> Void
    /// Reports a row of a client that cannot be read.
    private let onUnreadableRow: UnreadableRowReport
    private let state: Mutex<State>
    /// Locked while a batch is applied.
    private let applied: Mutex<Applied>
    private let digests = WindowDigests()
    private let waiters: Waiters<UInt64>

    /// Creates a follower.
    ///
    /// - Parameters:
    ///   - application: The state as of the first batch that will be received.
    ///   - position: The batch before it.
    package init(
        _ application: LogApplication, from position: LogPosition, catalogs: AppCatalogs,
        registry: Registry,
        accepted: AcceptedChanges, publisher: LogPublisher, seal: RegistrationSeal,
        hashes: FleetHashes, pushes: FleetPushes?, history: BatchHistory, clock: GatewayClock,
        onUnreadableRow: @escaping UnreadableRowReport,
        onFailure: @escaping @Sendable (LogApplication.Unreadable) -> Void
    ) {
        self.catalogs = catalogs
        self.registry = registry
        self.accepted = accepted
        self.publisher = publisher
        self.seal = seal
        self.hashes = hashes
        self.pushes = pushes
        self.history = history
        self.clock = clock
        self.onFailure = onFailure
        self.onUnreadableRow = onUnreadableRow
        state = Mutex(State(application: application))
        applied = Mutex(Applied(position: position))
        waiters = Waiters(from: application.position, patience: Self.patience, clock: clock)
    }

    /// The last sequence that was handed to the event loops.
    package var position: UInt64 { waiters.reached }

    /// Returns `true` once the entries up to a sequence are handed to the event loops, and `false` if
    /// they are not after ``patience`` milliseconds, because this node does not get the log.
    package func reached(_ sequence: UInt64) async -> Bool { await waiters.wait(for: sequence) }

    /// The longest wait for a position, in milliseconds.
    package static let patience: Int64 = 1_000

    /// Returns once an entry after `position` is handed to the event loops, or after `timeout`
    /// milliseconds.
    func applied(after position: UInt64, within timeout: Int64) async {
        let end = clock.now() + timeout
        while self.position <= position, clock.now() < end {
            await clock.sleep(clock.now() + Self.interval)
        }
    }

    /// The time between two looks at the position, in milliseconds.
    private static let interval: Int64 = 2

    /// Holds a client from its next record on, until ``forget(_:)``: this node registers it.
    func expect(_ client: ClientKey) {
        state.withLock { $0.expected[client, default: 0] += 1 }
    }

    /// Ends what ``expect(_:)`` began. A client that was registered meanwhile stays.
    func forget(_ client: ClientKey) {
        state.withLock { state in
            let count = (state.expected[client] ?? 0) - 1
            state.expected[client] = count > 0 ? count : nil
        }
    }

    private func isHeld(_ client: ClientKey) -> Bool {
        registry.record(client) != nil || state.withLock { $0.expected[client] != nil }
    }

    /// Takes the next batch; called on the thread of the log.
    package func receive(_ batch: LogBatch, read: @escaping Read) {
        state.withLock { $0.waiting.append(batch) }
        proceed(read)
    }

    private func proceed(_ read: @escaping Read) {
        while let batch = state.withLock({ $0.next }) {
            let held = LogApplication.registered(in: batch).filter {
                isHeld(ClientKey(app: $0.app, client: $0.client)) || pushes?.owns($0) == true
            }
            guard held.isEmpty else {
                state.withLock { $0.isReading = true }
                self.read(held[...], of: batch, known: [:], read)
                return
            }
            apply(batch, rows: [:])
        }
    }

    /// The time between two attempts to read rows, in milliseconds.
    private static let retry: Int64 = 50

    /// The number of rows in one reading.
    private static let rowsPerReading = 100

    /// Reads the rest of the rows of a batch, and applies it then: what follows waits, so that no
    /// entry behind the record meets the registration before it.
    private func read(
        _ keys: ArraySlice<RegistrationKey>, of batch: LogBatch,
        known: [RegistrationKey: RegistrationRow], _ read: @escaping Read
    ) {
        let portion = Array(keys.prefix(Self.rowsPerReading))
        read(.rows(portion, asOf: batch.position.last)) { outcome in
            guard case .rows(let rows, _) = outcome else {
                // Refused while the servers are away or busy: the entries wait.
                Task {
                    await self.clock.sleep(self.clock.now() + Self.retry)
                    self.read(keys, of: batch, known: known, read)
                }
                return
            }
            let known = known.merging(rows) { $1 }
            let rest = keys.dropFirst(portion.count)
            guard rest.isEmpty else { return self.read(rest, of: batch, known: known, read) }
            self.apply(batch, rows: known)
            self.state.withLock { $0.isReading = false }
            self.proceed(read)
        }
    }

    private func apply(_ batch: LogBatch, rows: [RegistrationKey: RegistrationRow]) {
        do throws(LogApplication.Unreadable) {
            try applied.withLock { applied throws(LogApplication.Unreadable) in
                try publish(batch, rows)
                applied.position = batch.position
                let minute = batch.at / Self.minute
                if minute != applied.minute, applied.minute != nil {
                    publisher.copyVersions { [digests] in digests.compute($0) }
                }
                applied.minute = minute
            }
        } catch {
            state.withLock { $0.hasFailed = true }
            onFailure(error)
            return
        }
        // Not before: who waits for a position reads what it brought.
        waiters.advance(to: UInt64(batch.position.last))
    }

    private func publish(
        _ batch: LogBatch, _ rows: [RegistrationKey: RegistrationRow]
    ) throws(LogApplication.Unreadable) {
        let registrations = open(rows)
        let effects = try state.withLock { state throws(LogApplication.Unreadable) in
            state.waiting.removeFirst()
            return try state.application.apply(batch, rows: registrations)
        }
        var messages: [LogMessage] = []
        messages.reserveCapacity(effects.count)
        for effect in effects { perform(effect, of: batch, &messages) }
        if batch.records.count > 0 {
            accepted.note(
                batch.at, of: UInt64(batch.first), through: UInt64(batch.position.last))
        }
        // Before any cursor of the batch is issued.
        history.note(batch.position)
        publisher.publish(messages)
    }

    /// Hands over a copy of the state as it is between two batches, on another thread. Batches wait
    /// while references are copied, not while keys are.
    package func copy(_ receive: @escaping @Sendable (NodeSnapshot) -> Void) {
        applied.withLock { applied in
            let position = applied.position
            let (tags, removals) = (history.tags, catalogs.removals)
            let ruleSets = state.withLock { $0.application.ruleSets }
            publisher.copyVersions { versions in
                receive(
                    NodeSnapshot(
                        position: position, floor: Int64(clamping: versions.floor), tags: tags,
                        removals: removals,
                        apps: ruleSets.sorted { $0.key < $1.key }.compactMap { app, rules in
                            versions.versions(of: app).map {
                                NodeSnapshot.App(name: app, history: rules.history, versions: $0)
                            }
                        }))
            }
        }
    }

    /// The newest digest of the versions; `nil` before the second minute of batches.
    var windowDigest: WindowDigest? { digests.latest }

    /// The milliseconds of a minute.
    private static let minute: Int64 = 60_000

    /// Returns the registrations of rows; `nil` for one that cannot be read, which concerns no other
    /// client.
    private func open(
        _ rows: [RegistrationKey: RegistrationRow]
    ) -> [RegistrationKey: StoredRegistration?] {
        rows.mapValues { row in
            do {
                let opened = try seal.open(
                    row.content.payload, of: row.key, tokens: row.ownTokens, hashes)
                pushes?.drop(opened.lost, of: row.key)
                return opened.stored
            } catch {
                onUnreadableRow(row.key, error)
                return nil
            }
        }
    }

    private func perform(
        _ effect: LogApplication.Effect, of batch: LogBatch, _ messages: inout [LogMessage]
    ) {
        switch effect {
        case .entry(let entry): messages.append(.entry(entry))
        case .catalog(let rules, let document): catalogs.install(rules, document)
        case .decided(let decision, let rules, let sequence):
            accepted.note(decision, by: rules, at: sequence, acceptedAt: batch.at)
        case .registered(let record, let key):
            // Others are read because this node pushes to them.
            if isHeld(key) {
                registry.put(record, app: key.app, at: UInt64(batch.position.last))
            }
            messages.append(
                .registered(
                    record, app: key.app, receipts: ShardReceipts(count: publisher.loopCount)))
        case .removed(let key):
            registry.remove(key)
            messages.append(.removed(key))
        case .removedApp(let app, let sequence):
            catalogs.remove(app: app, at: sequence)
            registry.removeAll(of: app)
        }
    }
}
