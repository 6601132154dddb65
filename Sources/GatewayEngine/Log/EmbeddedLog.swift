import CoreMetrics
import Foundation
import GatewayCore
import GatewayDocuments
import GatewayRecords
import GatewayStorage
import WidgetModel

/// The log and the registrations in the embedded store of this gateway.
package final class EmbeddedLog: EngineLog {
    let store: SQLiteStore
    let writer: LogWriter
    let catalogs: AppCatalogs
    let registry: Registry
    private let accepted: AcceptedChanges
    private let metrics: GatewayMetrics
    let clock: GatewayClock

    init(
        store: SQLiteStore, writer: LogWriter, catalogs: AppCatalogs, registry: Registry,
        accepted: AcceptedChanges, metrics: GatewayMetrics, clock: GatewayClock
    ) {
        self.store = store
        self.writer = writer
        self.catalogs = catalogs
        self.registry = registry
        self.accepted = accepted
        self.metrics = metrics
        self.clock = clock
    }

    package var head: UInt64 { store.head }

    package func barrier() async throws -> UInt64 { store.head }

    /// All registrations are read at the start.
    package func isHeld(_ key: ClientKey) -> Bool { true }

    package func hold(_ key: ClientKey) async throws {}

    var publisher: LogPublisher { writer.publisher }

    // MARK: Changes

    package func append(
        _ post: DecidedPost, to app: String, trace: PostTrace?
    ) async throws -> PostOutcome? {
        try await writer.write(for: .app(app), cost: post.memoryBytes) {
            try self.append(post, to: app, trace: trace, &$0)
        }
    }

    /// The number of events with reused ids at which a post is rejected without checking the rest:
    /// a comparison costs as much as the log's entry holds, and the sender may have posted little.
    private static let reusedMax = 8

    private func append(
        _ post: DecidedPost, to app: String, trace: PostTrace?,
        _ transaction: inout StoreTransaction
    ) throws -> PostOutcome? {
        let began = trace == nil ? 0 : GatewayTracing.now
        let entry = catalogs.entry(of: app, transaction)
        guard let ruleSet = entry.ruleSet else { throw EngineError.unknownApp }
        guard ruleSet === post.ruleSet else { return nil }
        var outcome = PostOutcome()
        let fresh = try fresh(
            of: post, app: app, after: entry.removal, counting: &outcome, &transaction)
        let acceptedAt = clock.wallMilliseconds()
        let acceptedTime = timestamp(acceptedAt)
        var messages: [LogMessage] = []
        messages.reserveCapacity(fresh.count)
        var recent: [(sequence: UInt64, decision: RuleSet.Decision)] = []
        recent.reserveCapacity(fresh.count)
        var places: [PostTrace.DecidedEvent] = []
        for (index, decision) in fresh {
            let event = post.events[index]
            let sequence = try transaction.append(
                app: app, type: .change, source: event.source, eventID: event.id,
                acceptedAt: acceptedAt, payload: post.payloads[index])
            outcome.sequence = max(outcome.sequence, sequence)
            if decision.isUnmatched { outcome.unmatched += 1 }
            if decision.isBroad { outcome.broad += 1 }
            recent.append((sequence, decision))
            if trace != nil {
                places.append(.init(index: index, sequence: sequence, decision: decision))
            }
            messages.append(
                .entry(
                    LogEntry(
                        sequence: sequence, app: app, acceptedAt: acceptedAt,
                        urgency: event.change.urgency,
                        body: .change(
                            decision, cause: ChangeCause(time: event.time ?? acceptedTime)))))
        }
        outcome.accepted = fresh.count
        if post.events.isEmpty { outcome.sequence = transaction.nextSequence - 1 }
        guard !recent.isEmpty else { return outcome }
        let traced = trace?.decided(
            places, post.events, app, by: ruleSet, loops: publisher.loopCount, since: began)
        transaction.afterCommit { [messages, recent] in
            self.metrics.decisions.increment(
                by: recent.reduce(0) { $0 + $1.decision.keys.count })
            self.accepted.note(recent, by: ruleSet, at: acceptedAt)
            self.publisher.publish(messages, traced)
        }
        return outcome
    }

    /// Returns the events of a post that the log does not contain, with their decisions.
    private func fresh(
        of post: DecidedPost, app: String, after removal: UInt64,
        counting outcome: inout PostOutcome, _ transaction: inout StoreTransaction
    ) throws -> [(index: Int, decision: RuleSet.Decision)] {
        let isBatch = post.events.count > 1
        var fresh: [(index: Int, decision: RuleSet.Decision)] = []
        fresh.reserveCapacity(post.events.count)
        var freshBytes = 0
        var reused = Faults()
        for (index, event) in post.events.enumerated() {
            if post.repetitions[index] != nil {
                outcome.duplicates += 1
            } else if let known = try transaction.event(
                app: app, source: event.source, id: event.id, after: removal)
            {
                outcome.duplicates += 1
                outcome.sequence = max(outcome.sequence, known.sequence)
                if try !LogPayload.isChange(known.payload, event.change) {
                    reused.add(
                        isBatch ? "[\(index)].id" : "id",
                        "was already used by an earlier event of this source")
                    if reused.count >= Self.reusedMax { break }
                }
            } else {
                switch post.decisions[index] {
                case .success(let decision):
                    fresh.append((index, decision))
                    freshBytes += post.payloads[index].count
                case .failure(let error):
                    throw EngineError.invalid(
                        Faults(error, catalogs.limits, index: isBatch ? index : nil))
                }
            }
        }
        guard reused.isEmpty else { throw EngineError.eventIDReused(reused) }
        try writer.checkLog(adding: freshBytes, of: app, transaction)
        return fresh
    }

    // MARK: Reloads

    package func append(
        _ scope: ReloadScope, to app: String, trace: ReloadTrace?
    ) async throws -> UInt64 {
        try await writer.write(for: .app(app), cost: 256) { transaction in
            guard let ruleSet = self.catalogs.entry(of: app, transaction).ruleSet else {
                throw EngineError.unknownApp
            }
            switch scope {
            case .everything: break
            case .kind(let kind):
                guard ruleSet.since(kind: kind) != nil else {
                    throw EngineError.invalid(
                        Faults("kind", "is not declared in the app's catalog"))
                }
            case .client(let client):
                guard self.registry.record(ClientKey(app: app, client: client)) != nil else {
                    throw EngineError.unknownClient
                }
            }
            let entry = try self.append(
                .reload, .reload(scope), app: app, payload: LogPayload.reload(scope), &transaction)
            transaction.afterCommit {
                self.accepted.note(
                    entry.acceptedAt, of: entry.sequence, through: entry.sequence)
                self.publisher.publish(
                    [.entry(entry)],
                    trace?.committed(at: entry.sequence, loops: self.publisher.loopCount))
            }
            return entry.sequence
        }
    }

    /// Appends an entry that is not caused by an event.
    func append(
        _ type: LogEntryType, _ body: LogEntry.Body, app: String, payload: Data = Data(),
        _ transaction: inout StoreTransaction
    ) throws -> LogEntry {
        let acceptedAt = clock.wallMilliseconds()
        let sequence = try transaction.append(
            app: app, type: type, source: nil, eventID: nil, acceptedAt: acceptedAt,
            payload: payload)
        return LogEntry(sequence: sequence, app: app, acceptedAt: acceptedAt, body: body)
    }
}
