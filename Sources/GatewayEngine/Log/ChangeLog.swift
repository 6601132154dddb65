import CoreMetrics
import Foundation
import GatewayCore
import GatewayDocuments
import GatewayRecords
import GatewayStorage
import Logging
import Synchronization
import WidgetModel

/// Appends changes, catalogs and reloads to the log, in one order: returns when they are on disk
/// and handed to every event loop.
package final class ChangeLog: Sendable {
    let store: SQLiteStore
    let writer: LogWriter
    let catalogs: AppCatalogs
    let registry: Registry
    private let documents: DocumentWork
    private let metrics: GatewayMetrics
    private let tracing: GatewayTracing?
    let clock: GatewayClock
    /// The acceptance times of recent posts, in milliseconds since 1970. Their number is bounded;
    /// deliveries of older changes are not measured.
    private let acceptTimes = Mutex(SequenceWindow<Int64>(rangesMax: 16_384))
    /// Written when changes are on disk and before they are published, so that it contains every
    /// change that a client can acknowledge.
    let recentChanges = Mutex(RecentChanges())
    /// The head of the log at the start; recent changes are known only above it.
    let startedAt: UInt64

    init(
        store: SQLiteStore, writer: LogWriter, catalogs: AppCatalogs, registry: Registry,
        documents: DocumentWork, metrics: GatewayMetrics, tracing: GatewayTracing?,
        clock: GatewayClock
    ) {
        self.store = store
        self.writer = writer
        self.catalogs = catalogs
        self.registry = registry
        self.documents = documents
        self.metrics = metrics
        self.tracing = tracing
        self.clock = clock
        startedAt = store.head
    }

    /// Returns when a change or reload was accepted, in milliseconds since 1970; `nil` if that is
    /// unknown or no longer known.
    package func acceptTime(of sequence: UInt64) -> Int64? {
        acceptTimes.withLock { $0[sequence] }
    }

    /// The maximum number of attempts at deciding or compiling by a catalog that others replace
    /// concurrently.
    static let attemptsMax = 8

    /// The result of a post.
    package struct PostOutcome: Sendable {
        package var accepted = 0
        package var duplicates = 0
        package var unmatched = 0
        package var broad = 0
        package var sequence: UInt64 = 0
    }

    /// Appends a post, whole or not at all.
    ///
    /// The changes are decided on the caller's thread, by the catalog in force then. If another one
    /// is in force when the post is written, they are decided again, at most ``attemptsMax`` times
    /// in all.
    package func post(_ events: [CloudEvent], app: String) async throws -> PostOutcome {
        let payloads = events.map { LogPayload.change($0.change, time: $0.time) }
        let trace = tracing.flatMap { PostTrace(events, app, $0.tracer) }
        let repetitions = try DecidedPost.repetitions(in: events)
        do {
            for _ in 0..<Self.attemptsMax {
                let rules = catalogs.ruleSet(of: app)
                let isLong = DecidedPost.isLong(events, by: rules)
                let decided = try await documents.run(isLong ? .large : .bytes(0), for: app) {
                    try await DecidedPost(
                        events, payloads, repeating: repetitions, by: rules, catalogs.limits)
                }
                let outcome = try await writer.write(for: .app(app), cost: decided.memoryBytes) {
                    try self.append(decided, to: app, trace: trace, &$0)
                }
                guard let outcome else { continue }
                trace?.end()
                metrics.changesAccepted.increment(by: outcome.accepted)
                metrics.changesDuplicate.increment(by: outcome.duplicates)
                metrics.changesUnmatched.increment(by: outcome.unmatched)
                metrics.changesBroad.increment(by: outcome.broad)
                return outcome
            }
            throw EngineError.busy(.catalogChanges)
        } catch {
            trace?.end(error)
            throw error
        }
    }

    /// The number of events with reused ids at which a post is rejected without checking the rest:
    /// a comparison costs as much as the log's entry holds, and the sender may have posted little.
    private static let reusedMax = 8

    /// Appends a decided post; returns `nil` if another catalog is in force than the one that
    /// decided it.
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
        var places: [PostTrace.Place] = []
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
        guard let first = recent.first?.sequence, let last = recent.last?.sequence else {
            return outcome
        }
        let traced = trace?.decided(
            places, post.events, app, by: ruleSet, loops: writer.loopCount, since: began)
        transaction.afterCommit { [messages, recent] in
            self.acceptTimes.withLock { $0.note(acceptedAt, of: first, through: last) }
            self.metrics.decisions.increment(
                by: recent.reduce(0) { $0 + $1.decision.keys.count })
            self.recentChanges.withLock { changes in
                for (sequence, decision) in recent {
                    changes.note(
                        decision.keys, by: ruleSet, at: sequence, acceptedAt: acceptedAt)
                }
            }
            self.writer.publish(messages, traced)
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

    /// Appends an operator's reload; returns its sequence.
    ///
    /// - Throws: ``EngineError/unknownApp`` and ``EngineError/unknownClient``;
    ///   ``EngineError/invalid(_:)`` for a kind that is not declared.
    package func reload(_ scope: ReloadScope, app: String) async throws -> UInt64 {
        let trace = tracing.flatMap { ReloadTrace(app, scope, $0.tracer) }
        return try await writer.write(for: .app(app), cost: 256) { transaction in
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
                self.acceptTimes.withLock {
                    $0.note(entry.acceptedAt, of: entry.sequence, through: entry.sequence)
                }
                self.writer.publish(
                    [.entry(entry)],
                    trace?.committed(at: entry.sequence, loops: self.writer.loopCount))
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
