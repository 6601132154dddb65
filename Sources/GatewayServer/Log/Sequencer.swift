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
    /// The limits of what an app may keep.
    let quota: AppQuota
    let hash: SipHash
    let acceptTimes = AcceptTimes()
    let registrationTurns = RegistrationTurns()
    /// Where documents are worked on that are too large for threads that all requests share.
    let documents: DocumentWork
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
        limits: Limits, quota: AppQuota, hash: SipHash, state: State, loops: [ShardLoop],
        push: PushLoop?, tracing: GatewayTracing?
    ) {
        self.store = store
        self.registry = registry
        self.desk = desk
        self.metrics = metrics
        documents = DocumentWork(turn: metrics.turns(of: .documents))
        self.limits = limits
        self.quota = quota
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
    /// - Parameters:
    ///   - lane: Whose turn it uses: the app's that asked for it.
    ///   - freesSpace: See ``SQLiteStore/write(for:cost:freesSpace:_:)``.
    /// - Throws: What the job throws; 503 when the disk or the event loops cannot follow.
    func write<T: Sendable>(
        for lane: WriterLane, cost: Int, freesSpace: Bool = false,
        _ job: @escaping @Sendable (inout StoreTransaction) throws -> T
    ) async throws -> T {
        let head = store.head
        let lowest = loops.reduce(head) { min($0, $1.position) }
        guard head - lowest <= Self.backlogMax else {
            throw Problem.unavailable("Too much waits to be sent; try again.")
        }
        guard let span = tracing?.beginCommit() else {
            return try await store(lane, cost, freesSpace, job)
        }
        do {
            let value = try await store(lane, cost, freesSpace) { transaction in
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
        _ lane: WriterLane, _ cost: Int, _ freesSpace: Bool,
        _ job: @escaping @Sendable (inout StoreTransaction) throws -> T
    ) async throws -> T {
        do {
            return try await store.write(for: lane, cost: cost, freesSpace: freesSpace, job).value
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
    ///
    /// The changes are decided on the caller's thread, by the catalog in force then. Where another one
    /// is in force when the post's turn comes, they are decided again, at most
    /// ``catalogAttemptsMax`` times in all.
    func post(_ events: [CloudEvent], app: String) async throws -> PostOutcome {
        let payloads = events.map { LogPayload.change($0.change, time: $0.time) }
        let trace = tracing.flatMap { PostTrace(events, app, $0.tracer) }
        let posted = try Self.repetitions(in: events)
        do {
            for _ in 0..<Self.catalogAttemptsMax {
                let rules = ruleSet(of: app)
                let isLong = DecidedPost.isLong(events, by: rules)
                let decided = try await documents.run(isLong ? .large : .bytes(0), for: app) {
                    try await DecidedPost(
                        events, payloads, repeating: posted, by: rules, limits)
                }
                let cost = decided.memoryBytes
                let outcome = try await write(for: .app(app), cost: cost) { transaction in
                    try self.append(decided, app, trace, &transaction)
                }
                guard let outcome else { continue }
                trace?.end()
                metrics.changesAccepted.increment(by: outcome.accepted)
                metrics.changesDuplicate.increment(by: outcome.duplicates)
                metrics.changesUnmatched.increment(by: outcome.unmatched)
                metrics.changesBroad.increment(by: outcome.broad)
                return outcome
            }
            throw Problem.unavailable("The app's catalog keeps changing; try again.")
        } catch {
            trace?.end(error)
            throw error
        }
    }

    /// For each event of a post the earlier one that it repeats, if it repeats one.
    ///
    /// - Throws: 422 when one has the id of an earlier one and other data.
    private static func repetitions(in events: [CloudEvent]) throws -> [Int?] {
        // A post of one event has no other it could repeat.
        guard events.count > 1 else { return [nil] }
        var posted: [EventIdentity: Int] = [:]
        posted.reserveCapacity(events.count)
        // Written once for each event that is repeated, however often that is.
        var written: [Int: [UInt8]] = [:]
        var reused = Faults()
        let repetitions = events.indices.map { index -> Int? in
            let event = events[index]
            guard let earlier = posted.insertIfAbsent(index, for: EventIdentity(event)) else {
                return nil
            }
            let known = written[earlier] ?? events[earlier].change.json.serialized
            written[earlier] = known
            if known != event.change.json.serialized {
                reused.add("[\(index)].id", "was used in this batch already")
            }
            return earlier
        }
        guard reused.isEmpty else { throw Problem.eventIDReused(reused) }
        return repetitions
    }

    /// Events with ids of others that a post may have before it is refused without looking at the rest:
    /// comparing with what the log has costs what that holds, and the sender may have posted little.
    private static let reusedMax = 8

    /// Appends a decided post to the log; returns `nil` when another catalog is in force than it was
    /// decided by.
    private func append(
        _ post: DecidedPost, _ app: String, _ trace: PostTrace?,
        _ transaction: inout StoreTransaction
    ) throws -> PostOutcome? {
        let began = trace == nil ? 0 : GatewayTracing.now
        let (events, payloads) = (post.events, post.payloads)
        let (inForce, removal) = withState(transaction) {
            ($0.decider.ruleSets[app], $0.removals[app] ?? 0)
        }
        guard let ruleSet = inForce else { throw Problem.unknownApp }
        guard ruleSet === post.ruleSet else { return nil }
        var outcome = PostOutcome()
        var fresh: [(index: Int, decision: RuleSet.Decision)] = []
        fresh.reserveCapacity(events.count)
        var freshBytes = 0
        var reused = Faults()
        for (index, event) in events.enumerated() {
            if post.repetitions[index] != nil {
                outcome.duplicates += 1
            } else if let known = try transaction.event(
                app: app, source: event.source, id: event.id, after: removal)
            {
                outcome.duplicates += 1
                outcome.sequence = max(outcome.sequence, known.sequence)
                if try !LogPayload.isChange(known.payload, event.change) {
                    reused.add(
                        events.count > 1 ? "[\(index)].id" : "id",
                        "was used by an earlier event of this source")
                    if reused.count >= Self.reusedMax { break }
                }
            } else {
                switch post.decisions[index] {
                case .success(let decision):
                    fresh.append((index, decision))
                    freshBytes += payloads[index].count
                case .failure(let error):
                    throw Problem.tooManyKeys(error, limits, index: events.count > 1 ? index : nil)
                }
            }
        }
        guard reused.isEmpty else { throw Problem.eventIDReused(reused) }
        try checkLog(adding: freshBytes, of: app, transaction)
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
        return try await write(for: .app(app), cost: 256) { transaction in
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
