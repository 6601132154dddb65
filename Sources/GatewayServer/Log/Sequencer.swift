import CoreMetrics
import Foundation
import GatewayCore
import GatewaySigning
import GatewayStorage
import Logging
import OpenTelemetry
import Synchronization
import Tracing
import WidgetModel

/// Puts everything that changes the gateway into one order: writes it, and once it is on disk
/// hands it to every event loop, before its caller has an answer.
final class Sequencer: Sendable {
    /// What the log's writer knows beside the store. Touched by jobs, which run one after another
    /// on the writer's thread; the mutex is never waited for.
    struct State {
        var decider: Decider
        /// The catalogs in force, as they were put.
        var documents: [String: CatalogDocument] = [:]
        /// Where in the log apps were removed; what they had before is nobody's any more.
        var removals: [String: UInt64] = [:]
        /// A catalog of a transaction whose fate is not known yet, and what was before it.
        var staged: Staged?

        /// Remembers how everything is before an entry at `sequence`, whose transaction may fail.
        mutating func stage(at sequence: UInt64) {
            guard staged == nil else { return }
            staged = Staged(
                sequence: sequence, decider: decider, documents: documents, removals: removals)
        }
    }

    struct Staged {
        let sequence: UInt64
        let decider: Decider
        let documents: [String: CatalogDocument]
        let removals: [String: UInt64]
    }

    let store: SQLiteStore
    let registry: Registry
    let desk: CursorDesk
    let metrics: GatewayMetrics
    let limits: Limits
    let hash: SipHash
    let acceptTimes = AcceptTimes()
    /// Written when changes are on disk and before any event loop hears of them: what a client
    /// acknowledges is there.
    let recentChanges = Mutex(RecentChanges())
    let state: Mutex<State>
    let loops: [ShardLoop]
    /// Hears what the loops hear; `nil` where nothing is pushed.
    let push: PushLoop?
    /// `nil` where nothing is traced.
    let tracing: GatewayTracing?
    /// The head of the log at the start: what recent changes are known of lies above.
    let startedAt: UInt64

    init(
        store: SQLiteStore, registry: Registry, desk: CursorDesk, metrics: GatewayMetrics,
        limits: Limits, hash: SipHash, state: State, loops: [ShardLoop], push: PushLoop?,
        tracing: GatewayTracing?
    ) {
        self.store = store
        self.registry = registry
        self.desk = desk
        self.metrics = metrics
        self.limits = limits
        self.hash = hash
        self.state = Mutex(state)
        self.loops = loops
        self.push = push
        self.tracing = tracing
        startedAt = store.head
    }

    /// Hands messages to every loop, in commit order; called on the writer's thread.
    ///
    /// - Parameter traced: What is traced of them.
    func handOver(_ messages: [ShardLoop.Message], _ traced: PostTrace.Decided? = nil) {
        if let traced, let tracing { traced.committed(tracing) }
        let all = traced.map { messages + $0.messages } ?? messages
        for loop in loops { loop.submit(all) }
        push?.submit(messages.map { .log($0) })
    }

    /// How many loops take each message.
    var loopCount: Int { loops.count }

    /// Entries an event loop may be behind the log before writes are refused: what waits for a
    /// loop is kept in memory.
    static let backlogMax: UInt64 = 200_000

    /// Runs a job on the writer's thread and waits until what it wrote is on disk.
    ///
    /// - Throws: What the job throws; 503 when the disk or the event loops cannot follow.
    func write<T: Sendable>(
        cost: Int, _ job: @escaping @Sendable (inout StoreTransaction) throws -> T
    ) async throws -> T {
        let head = store.head
        let lowest = loops.reduce(head) { min($0, $1.position) }
        guard head - lowest <= Self.backlogMax else {
            throw Problem.unavailable("Too much waits to be sent; try again.")
        }
        guard let span = tracing?.beginCommit() else { return try await store(cost, job) }
        do {
            let value = try await store(cost) { transaction in
                // Before this it waited for the transaction before.
                span.addEvent("writing")
                return try job(&transaction)
            }
            span.end()
            return value
        } catch {
            span.end(failing: error)
            throw error
        }
    }

    private func store<T: Sendable>(
        _ cost: Int, _ job: @escaping @Sendable (inout StoreTransaction) throws -> T
    ) async throws -> T {
        do {
            return try await store.write(cost: cost, job).value
        } catch let error as StoreError {
            throw Problem.store(error)
        }
    }

    /// Forgets a catalog whose transaction failed: its sequence is being assigned anew.
    func withState<T>(
        _ transaction: borrowing StoreTransaction, _ body: (inout State) throws -> sending T
    ) rethrows -> sending T {
        let next = transaction.nextSequence
        return try state.withLock { state in
            if let staged = state.staged, next <= staged.sequence {
                state.decider = staged.decider
                state.documents = staged.documents
                state.removals = staged.removals
                state.staged = nil
            }
            return try body(&state)
        }
    }

    /// The catalog of an app as it was put.
    func catalogDocument(_ app: String) -> CatalogDocument? {
        state.withLock { $0.documents[app] }
    }

    /// Where in the log an app was removed last; 0 for one that never was, as far as the log says.
    func removal(of app: String) -> UInt64 {
        state.withLock { $0.removals[app] ?? 0 }
    }

    /// The rules in force for an app.
    func ruleSet(of app: String) -> RuleSet? {
        state.withLock { $0.decider.ruleSets[app] }
    }

    /// The catalogs in force, each compiled, by app.
    var ruleSets: [RuleSet] {
        state.withLock { state in
            state.documents.keys.sorted().compactMap { state.decider.ruleSets[$0] }
        }
    }

    // MARK: Changes

    /// What became of a post.
    struct PostOutcome: Sendable {
        var accepted = 0
        var duplicates = 0
        var unmatched = 0
        var broad = 0
        var sequence: UInt64 = 0
    }

    /// Takes a post whole or not at all; returns when it is on disk and handed to every loop.
    func post(_ events: [CloudEvent], app: String) async throws -> PostOutcome {
        let payloads = events.map { LogPayload.change($0.change, time: $0.time) }
        let cost = payloads.reduce(256) { $0 + $1.count + 256 }
        let trace = tracing.flatMap { PostTrace(events, app, $0.tracer) }
        let outcome: PostOutcome
        do {
            outcome = try await write(cost: cost) { transaction in
                try self.append(events, payloads, app, trace, &transaction)
            }
        } catch {
            trace?.end(error)
            throw error
        }
        trace?.end()
        metrics.changesAccepted.increment(by: outcome.accepted)
        metrics.changesDuplicate.increment(by: outcome.duplicates)
        metrics.changesUnmatched.increment(by: outcome.unmatched)
        metrics.changesBroad.increment(by: outcome.broad)
        return outcome
    }

    private func append(
        _ events: [CloudEvent], _ payloads: [Data], _ app: String, _ trace: PostTrace?,
        _ transaction: inout StoreTransaction
    ) throws -> PostOutcome {
        let began = trace == nil ? 0 : GatewayTracing.now
        let (ruleSet, removal) = withState(transaction) {
            ($0.decider.ruleSets[app], $0.removals[app] ?? 0)
        }
        guard let ruleSet else { throw Problem.unknownApp }
        var outcome = PostOutcome()
        var fresh: [(index: Int, decision: RuleSet.Decision)] = []
        fresh.reserveCapacity(events.count)
        var posted: [EventIdentity: Int] = [:]
        if events.count > 1 { posted.reserveCapacity(events.count) }
        var reused = Faults()
        for (index, event) in events.enumerated() {
            // A post of one event has no other it could repeat.
            let earlier =
                events.count > 1
                ? posted.insertIfAbsent(index, for: EventIdentity(event)) : nil
            func place() -> String { events.count > 1 ? "[\(index)].id" : "id" }
            if let earlier {
                outcome.duplicates += 1
                if events[earlier].change.json.serialized != event.change.json.serialized {
                    reused.add(place(), "was used in this batch already")
                }
            } else if let known = try transaction.event(
                app: app, source: event.source, id: event.id, after: removal)
            {
                outcome.duplicates += 1
                outcome.sequence = max(outcome.sequence, known.sequence)
                let stored = try LogPayload.readChange(known.payload, limits: .none).change
                if stored.json.serialized != event.change.json.serialized {
                    reused.add(place(), "was used by an earlier event of this source")
                }
            } else {
                do throws(RuleSet.TooManyKeys) {
                    fresh.append((index, try ruleSet.decide(event.change, limits: limits)))
                } catch {
                    throw Problem.tooManyKeys(error, limits, index: events.count > 1 ? index : nil)
                }
            }
        }
        guard reused.isEmpty else { throw Problem.eventIDReused(reused) }
        let acceptedAt = desk.wallMilliseconds()
        var messages: [ShardLoop.Message] = []
        messages.reserveCapacity(fresh.count)
        var keys = 0
        var (first, last) = (UInt64(0), UInt64(0))
        lazy var acceptedTime = timestamp(acceptedAt)
        var places: [PostTrace.Place] = []
        for (index, decision) in fresh {
            let event = events[index]
            let sequence = try transaction.append(
                app: app, type: .change, source: event.source, eventID: event.id,
                acceptedAt: acceptedAt, payload: payloads[index])
            if outcome.accepted == 0 { first = sequence }
            last = sequence
            outcome.accepted += 1
            outcome.sequence = max(outcome.sequence, sequence)
            if decision.isUnmatched { outcome.unmatched += 1 }
            if decision.isBroad { outcome.broad += 1 }
            keys += decision.keys.count
            if trace != nil {
                places.append(.init(index: index, sequence: sequence, decision: decision))
            }
            messages.append(
                .entry(
                    LogEntry(
                        sequence: sequence, app: app, acceptedAt: acceptedAt,
                        urgency: event.change.urgency,
                        body: .change(decision, causeTime: event.time ?? acceptedTime))))
        }
        if events.isEmpty { outcome.sequence = transaction.nextSequence - 1 }
        if !messages.isEmpty {
            let (entries, decisions) = (messages, keys)
            let sequences = (first: first, last: last)
            let traced = trace?.decided(
                places, events, app, by: ruleSet, loops: loopCount, since: began)
            transaction.afterCommit {
                self.acceptTimes.note(
                    sequences.first, through: sequences.last, at: acceptedAt)
                self.metrics.decisions.increment(by: decisions)
                self.noteRecent(entries, ruleSet, acceptedAt)
                self.handOver(entries, traced)
            }
        }
        return outcome
    }

    private func noteRecent(
        _ messages: [ShardLoop.Message], _ ruleSet: RuleSet, _ acceptedAt: Int64
    ) {
        recentChanges.withLock { recent in
            for case .entry(let entry) in messages {
                guard case .change(let decision, _) = entry.body else { continue }
                recent.note(
                    decision.keys, by: ruleSet, at: entry.sequence, acceptedAt: acceptedAt)
            }
        }
    }

    /// Asks for a reload; returns its sequence.
    ///
    /// - Throws: 404 for an app without a catalog and a client that is not registered, 422 for a kind
    ///   that is not declared.
    func reload(_ scope: ReloadScope, app: String) async throws -> UInt64 {
        let trace = tracing.flatMap { ReloadTrace(app, scope, $0.tracer) }
        return try await write(cost: 256) { transaction in
            let ruleSet = self.withState(transaction) { $0.decider.ruleSets[app] }
            guard let ruleSet else { throw Problem.unknownApp }
            switch scope {
            case .everything: break
            case .kind(let kind):
                guard ruleSet.since(kind: kind) != nil else {
                    throw Problem.wrong(Faults("kind", "is not declared in the app's catalog"))
                }
            case .client(let client):
                guard self.registry.record(ClientKey(app: app, client: client)) != nil else {
                    throw Problem.unknownClient
                }
            }
            let acceptedAt = self.desk.wallMilliseconds()
            let sequence = try transaction.append(
                app: app, type: .reload, source: nil, eventID: nil, acceptedAt: acceptedAt,
                payload: LogPayload.reload(scope))
            transaction.afterCommit {
                self.acceptTimes.note(sequence, through: sequence, at: acceptedAt)
                self.handOver(
                    [
                        .entry(
                            LogEntry(
                                sequence: sequence, app: app, acceptedAt: acceptedAt,
                                body: .reload(scope)))
                    ], trace?.committed(at: sequence, loops: self.loopCount))
            }
            return sequence
        }
    }
}

/// What de-duplication goes by: bytes, for strings that Unicode takes for the same are not.
private struct EventIdentity: Hashable {
    private let source: String
    private let id: String

    init(_ event: CloudEvent) {
        source = event.source
        id = event.id
    }

    static func == (left: Self, right: Self) -> Bool {
        left.id.hasSameBytes(as: right.id) && left.source.hasSameBytes(as: right.source)
    }

    func hash(into hasher: inout Hasher) {
        id.hashBytes(into: &hasher)
        source.hashBytes(into: &hasher)
    }
}

extension Dictionary {
    /// The value there is for `key`; without one, `value` is from now on.
    fileprivate mutating func insertIfAbsent(_ value: Value, for key: Key) -> Value? {
        func exchange(_ place: inout Value?) -> Value? {
            if let known = place { return known }
            place = value
            return nil
        }
        return exchange(&self[key])
    }
}
