import Foundation
import GatewayCore
import GatewayEngine
import GatewayPostgres
import GatewayRecords
import Synchronization
import WidgetModel

/// The log and the registrations of a fleet, in PostgreSQL.
///
/// This node applies a write when it reads it back from the log, after everything that other nodes
/// wrote before it. A method returns after that.
package final class FleetLog: EngineLog {
    private let log: PostgresLog
    private let follower: FleetFollower
    private let hashes: FleetHashes
    private let seal: RegistrationSeal
    private let catalogs: AppCatalogs
    private let registry: Registry
    private let loops: ShardLoops
    private let clock: GatewayClock
    /// The times at which the newest position was asked for.
    private let heads: Waiters<Int64>
    private let newest = Atomic<Int64>(0)
    /// Returns whether this node surely has the latest history.
    private let holdsLease: @Sendable () -> Bool
    private let onUnreadableRow: FleetFollower.UnreadableRowReport

    /// Creates the log of a node whose batches `follower` applies.
    package init(
        _ log: PostgresLog, follower: FleetFollower, hashes: FleetHashes, seal: RegistrationSeal,
        catalogs: AppCatalogs, registry: Registry, loops: ShardLoops, clock: GatewayClock,
        holdsLease: @escaping @Sendable () -> Bool,
        onUnreadableRow: @escaping FleetFollower.UnreadableRowReport
    ) {
        self.log = log
        self.follower = follower
        self.hashes = hashes
        self.seal = seal
        self.catalogs = catalogs
        self.registry = registry
        self.loops = loops
        self.clock = clock
        self.holdsLease = holdsLease
        self.onUnreadableRow = onUnreadableRow
        heads = Waiters(from: .min, patience: FleetFollower.patience, clock: clock)
    }

    package var head: UInt64 { follower.position }

    package func barrier() async throws -> UInt64 {
        // Later than any question in this millisecond, which may have been answered before a write
        // of another node.
        let asked = PostgresLoop.now + 1
        log.look(at: asked)
        // A primary that was replaced and does not know it still answers; it renews no lease.
        guard holdsLease(), await heads.wait(for: asked), holdsLease() else {
            throw EngineError.cluster(.noAnswer)
        }
        let head = UInt64(newest.load(ordering: .acquiring))
        guard await follower.reached(head) else {
            throw EngineError.cluster(.behind)
        }
        return head
    }

    /// Returns whether this node has applied the log up to a sequence, after a wait of at most a
    /// second: then everything up to there is durable.
    func hasApplied(_ sequence: UInt64) async -> Bool { await follower.reached(sequence) }

    /// Records the newest position of the log, as asked for at a time of `PostgresLoop.now`.
    package func observe(_ head: LogPosition, askedAt: Int64) {
        newest.store(head.last, ordering: .releasing)
        heads.advance(to: askedAt)
    }

    // MARK: Registrations in memory

    package func isHeld(_ key: ClientKey) -> Bool { registry.record(key) != nil }

    package func hold(_ key: ClientKey) async throws {
        for _ in 0..<Self.attemptsMax where !isHeld(key) {
            let rowKey = hashes.key(of: key)
            let outcome = await withCheckedContinuation { continuation in
                log.read(.rows([rowKey], asOf: Int64(clamping: head))) { outcome in
                    // On the thread that applies the log: no record comes in between.
                    continuation.resume(returning: Result { try self.hold(outcome, key, rowKey) })
                }
            }
            if try outcome.get() { return }
        }
        guard isHeld(key) else { throw EngineError.busy(.registrationChanges) }
    }

    /// Holds the registration that was read; returns whether the row was as of the position of this
    /// node or later, so that the records behind it keep it up to date.
    private func hold(
        _ outcome: RowOutcome, _ key: ClientKey, _ rowKey: RegistrationKey
    ) throws -> Bool {
        switch outcome {
        case .rows(let rows, let read):
            guard let row = rows[rowKey] else { return true }
            guard follower.position <= UInt64(read) else { return false }
            let record: ClientRecord
            do {
                record = try seal.open(
                    row.content.payload, of: rowKey, tokens: row.ownTokens, hashes
                ).stored.record(of: key.client)
            } catch {
                // As if it were not registered: it registers again, which replaces the row.
                onUnreadableRow(rowKey, error)
                return true
            }
            registry.put(
                record, app: key.app, at: follower.position, isRestored: true,
                seenAt: clock.wallMilliseconds())
            return true
        case .refused(let refusal): throw EngineError(refusal)
        case .clients: return false
        }
    }

    // MARK: Changes

    package func append(
        _ post: DecidedPost, to app: String, trace: PostTrace?
    ) async throws -> PostOutcome? {
        guard let rules = catalogs.ruleSet(of: app) else { throw EngineError.unknownApp }
        guard rules === post.ruleSet else { return nil }
        let removal = catalogs.removal(of: app)
        let (indices, changes) = try changes(of: post, app: app, since: removal)
        var outcome = PostOutcome()
        outcome.duplicates = post.events.count - changes.count
        guard !changes.isEmpty else {
            outcome.sequence = head
            return outcome
        }
        let answer = try await write(.changes(changes), app: app, removal: removal)
        switch answer {
        case .accepted(let places):
            for (place, index) in zip(places, indices) {
                count(place, post.decisions[index], in: &outcome)
            }
        case .reused(let reused):
            var faults = Faults()
            for place in reused.prefix(Self.reusedMax) {
                faults.add(
                    post.events.count > 1 ? "[\(indices[place])].id" : "id",
                    "was already used by an earlier event of this source")
            }
            throw EngineError.eventIDReused(faults)
        case .written, .conflict, .refused, .unknown: return nil
        }
        try await inForce(outcome.sequence)
        return outcome
    }

    /// The number of events with reused ids that are named.
    private static let reusedMax = 8

    /// Returns the events of a post that repeat no earlier one of it, with their indices.
    ///
    /// - Throws: ``EngineError/invalid(_:)`` for an event that invalidates too much, also if the log
    ///   contains it: that is not known before the post is written.
    private func changes(
        of post: DecidedPost, app: String, since removal: UInt64
    ) throws(EngineError) -> (indices: [Int], changes: [LogWrite.Change]) {
        var indices: [Int] = []
        var changes: [LogWrite.Change] = []
        for (index, event) in post.events.enumerated() where post.repetitions[index] == nil {
            if case .failure(let error) = post.decisions[index] {
                throw .invalid(
                    Faults(
                        error, catalogs.limits, index: post.events.count > 1 ? index : nil))
            }
            let record = LogRecord(
                app: app,
                .change(
                    event: LogRecord.Event(source: event.source, id: event.id),
                    payload: Array(post.payloads[index])))
            indices.append(index)
            changes.append(
                LogWrite.Change(
                    key: hashes.event(
                        of: app, since: removal, source: event.source, id: event.id),
                    digest: hashes.digest(of: event.change), record: record.encoded))
        }
        return (indices, changes)
    }

    private func count(
        _ place: WriteOutcome.Place, _ decision: Result<RuleSet.Decision, RuleSet.TooManyKeys>,
        in outcome: inout PostOutcome
    ) {
        switch place {
        case .appended(let sequence):
            outcome.accepted += 1
            outcome.sequence = max(outcome.sequence, UInt64(sequence))
            guard case .success(let decision) = decision else { return }
            if decision.isUnmatched { outcome.unmatched += 1 }
            if decision.isBroad { outcome.broad += 1 }
        case .duplicate(let sequence):
            outcome.duplicates += 1
            outcome.sequence = max(outcome.sequence, UInt64(sequence))
        }
    }

    // MARK: Reloads, catalogs and apps

    package func append(
        _ scope: ReloadScope, to app: String, trace: ReloadTrace?
    ) async throws -> UInt64 {
        for _ in 0..<Self.attemptsMax {
            guard let rules = catalogs.ruleSet(of: app) else { throw EngineError.unknownApp }
            switch scope {
            case .everything: break
            case .kind(let kind):
                guard rules.since(kind: kind) != nil else {
                    throw EngineError.invalid(
                        Faults("kind", "is not declared in the app's catalog"))
                }
            case .client(let client):
                let key = ClientKey(app: app, client: client)
                guard try await row(key) != nil else { throw EngineError.unknownClient }
            }
            let answer = try await write(
                .reload(scope: Array(LogPayload.reload(scope))), app: app,
                removal: catalogs.removal(of: app))
            if let sequence = try await sequence(of: answer) { return sequence }
        }
        throw EngineError.busy(.catalogChanges)
    }

    package func put(_ upload: CatalogUpload) async throws -> CatalogOutcome? {
        let current = catalogs.document(of: upload.app)
        guard upload.precondition.holds(current?.etag) else {
            throw EngineError.preconditionFailed
        }
        if let current, current.etag == upload.etag {
            return CatalogOutcome(document: current, isNew: false)
        }
        let removal = catalogs.removal(of: upload.app)
        let answer = try await write(
            .catalog(
                payload: Array(upload.payload),
                replacing: Int64(current?.sequence ?? removal)),
            app: upload.app, removal: removal)
        guard let sequence = try await sequence(of: answer) else { return nil }
        let document = CatalogDocument(
            sequence: sequence, contentType: upload.contentType, body: upload.body,
            etag: upload.etag)
        return CatalogOutcome(document: document, isNew: current == nil)
    }

    package func removeApp(_ app: String) async throws -> (sequence: UInt64, clients: Int) {
        for _ in 0..<Self.attemptsMax {
            guard let document = catalogs.document(of: app) else { throw EngineError.unknownApp }
            let clients = registry.count(of: app)
            let answer = try await write(
                .removal(replacing: Int64(document.sequence)), app: app,
                removal: catalogs.removal(of: app))
            if let sequence = try await sequence(of: answer) { return (sequence, clients) }
        }
        throw EngineError.busy(.catalogChanges)
    }

    // MARK: Registrations

    package func registration(_ key: ClientKey) async throws -> RegistrationVersion? {
        guard let row = try await row(key) else { return nil }
        return RegistrationVersion(payload: try seal.payload(row), revision: row.revision)
    }

    package func put(_ update: RegistrationUpdate) async throws -> RegistrationUpdate.Outcome {
        guard update.base.ruleSet === catalogs.ruleSet(of: update.key.app) else {
            return .outdated(try await registration(update.key))
        }
        let (key, record) = (hashes.key(of: update.key), update.replacement.record)
        let payload = Array(update.replacement.payload)
        let content = try seal.content(
            payload, record, of: key, hashes, seenAt: update.isSeen ? clock.wallMilliseconds() : 0)
        follower.expect(update.key)
        defer { follower.forget(update.key) }
        let answer = try await write(
            .registration(
                RegistrationWrite(
                    key: key, base: update.base.version?.revision ?? 0, content: content)),
            app: key.app, removal: catalogs.removal(of: key.app))
        guard let sequence = try await sequence(of: answer) else {
            return .outdated(try await registration(update.key))
        }
        if update.isSeen { registry.noteSeen(update.key, now: clock.wallMilliseconds()) }
        return .stored(isNew: update.base.version == nil, position: sequence)
    }

    package func remove(_ key: ClientKey) async throws -> Bool {
        for _ in 0..<Self.attemptsMax {
            guard let row = try await row(key) else { return false }
            if try await remove(row) { return true }
        }
        throw EngineError.busy(.registrationChanges)
    }

    package func removeClients(
        of app: String, with attribute: (name: String, value: String), limit: Int
    ) async throws -> Int {
        let hash = hashes.attribute(attribute.name, attribute.value, of: app)
        var removed = 0
        while removed < limit {
            let wanted = limit - removed
            let reading = RowReading.clients(
                attribute: hash, app: app, after: "", limit: Int32(clamping: wanted))
            guard case .clients(let keys) = try await read(reading) else { break }
            for key in keys where try await remove(ClientKey(app: key.app, client: key.client)) {
                removed += 1
            }
            // Of a full list another node may have removed some; the next list is without them.
            if keys.count < wanted { break }
        }
        return removed
    }

    /// None: clients of a fleet are not removed for being unseen yet.
    package func removeClients(unseenSince: Int64, limit: Int) async throws -> Int { 0 }

    private func remove(_ row: RegistrationRow) async throws -> Bool {
        let answer = try await write(
            .registration(
                RegistrationWrite(key: row.key, base: row.revision, content: nil)),
            app: row.key.app, removal: catalogs.removal(of: row.key.app))
        return try await sequence(of: answer) != nil
    }

    private func row(_ key: ClientKey) async throws -> RegistrationRow? {
        let key = hashes.key(of: key)
        guard case .rows(let rows, _) = try await read(.rows([key], asOf: 0)) else { return nil }
        return rows[key]
    }

    // MARK: The servers

    /// The maximum number of attempts at a write that others contend for.
    private static let attemptsMax = 8

    /// - Throws: ``EngineError/cluster(_:)`` when nothing was written, or the outcome is unknown.
    private func write(
        _ content: LogWrite.Content, app: String, removal: UInt64
    ) async throws -> WriteOutcome {
        let outcome = await withCheckedContinuation { continuation in
            log.append(content, app: app, removal: Int64(removal)) {
                continuation.resume(returning: $0)
            }
        }
        switch outcome {
        case .refused(let refusal): throw EngineError(refusal)
        case .unknown: throw EngineError.cluster(.unknownOutcome)
        case .conflict:
            // Another node was faster; its record comes with the log.
            await follower.applied(after: head, within: Self.catchUp)
            return outcome
        case .accepted, .written, .reused: return outcome
        }
    }

    /// The longest wait for the record that a write conflicts with.
    private static let catchUp: Int64 = 200

    private func read(_ reading: RowReading) async throws -> RowOutcome {
        let outcome = await withCheckedContinuation { continuation in
            log.read(reading) { continuation.resume(returning: $0) }
        }
        if case .refused(let refusal) = outcome { throw EngineError(refusal) }
        return outcome
    }

    /// Returns the sequence of a write once it is in force here; `nil` if it has to be decided
    /// again.
    private func sequence(of outcome: WriteOutcome) async throws -> UInt64? {
        guard case .written(let sequence, _) = outcome else { return nil }
        try await inForce(UInt64(sequence))
        return UInt64(sequence)
    }

    /// Returns once every event loop of this node has applied the log up to a sequence; or earlier, if
    /// this node does not get the log: what is written is durable and in force from that sequence on.
    private func inForce(_ sequence: UInt64) async throws {
        guard await follower.reached(sequence) else { return }
        for loop in loops.all { try await loop.reached(sequence) }
    }
}

extension EngineError {
    fileprivate init(_ refusal: WriteRefusal) {
        switch refusal {
        case .busy: self = .cluster(.busy)
        case .unavailable: self = .cluster(.noWrites)
        case .tooLarge:
            self = .invalid(
                Faults("", "is larger than a batch of the log may be: send less at once"))
        case .invalidName:
            self = .invalid(Faults("", "has a name that is too long or contains a NUL"))
        }
    }
}
