import CatalogModel
import Foundation
import GatewayCore
import GatewayDocuments
import GatewayOperations
import GatewayStorage
import WidgetModel

/// The writes of the log, each decided in a turn of the writer. A method throws, or its result says
/// so, if nothing is written.
extension EngineLog {
    /// Puts what a job wrote in force once it is durable.
    private func applying(_ effect: LogEffect, _ turn: inout StoreTransaction) {
        let head = turn.nextSequence - 1
        turn.afterCommit { [applier] in applier.apply(effect, head: head) }
        turn.afterEffects { [applier] in applier.publish() }
    }

    /// Appends an entry that is not caused by an event.
    ///
    /// - Parameter start: The id of a start.
    private func append(
        _ type: LogEntryType, _ body: LogEntry.Body, app: String, payload: Data = Data(),
        urgency: Urgency = .normal, start id: String? = nil, _ turn: inout StoreTransaction
    ) throws -> LogEntry {
        let acceptedAt = clock.wallMilliseconds()
        let sequence = try turn.append(
            app: app, type: type, source: id.map { _ in Self.startSource }, eventID: id,
            acceptedAt: acceptedAt, payload: payload)
        return LogEntry(
            sequence: sequence, app: app, acceptedAt: acceptedAt, urgency: urgency, body: body)
    }

    /// The source of starts, which no event has.
    private static let startSource = ""

    // MARK: Changes

    /// The number of events with reused ids at which a post is rejected without checking the rest:
    /// a comparison costs as much as the log's entry holds, and the sender may have posted little.
    private static let reusedMax = 8

    func post(
        _ post: DecidedPost, to app: String, trace: PostTrace?, _ turn: inout StoreTransaction
    ) throws -> PostOutcome? {
        let began = trace == nil ? 0 : GatewayTracing.now
        let entry = catalogs.entry(of: app, before: turn.nextSequence)
        guard let ruleSet = entry.ruleSet else { throw EngineError.unknownApp }
        guard ruleSet === post.ruleSet else { return nil }
        var outcome = PostOutcome()
        let fresh = try fresh(of: post, app: app, after: entry.removal, counting: &outcome, &turn)
        let acceptedAt = clock.wallMilliseconds()
        let acceptedTime = timestamp(acceptedAt)
        var messages: [LogMessage] = []
        messages.reserveCapacity(fresh.count)
        var decisions: [(sequence: UInt64, decision: RuleSet.Decision)] = []
        decisions.reserveCapacity(fresh.count)
        var places: [PostTrace.DecidedEvent] = []
        for (index, decision) in fresh {
            let event = post.events[index]
            let sequence = try turn.append(
                app: app, type: .change, source: event.source, eventID: event.id,
                acceptedAt: acceptedAt, payload: post.payloads[index])
            outcome.sequence = max(outcome.sequence, sequence)
            if decision.isUnmatched { outcome.unmatched += 1 }
            if decision.isBroad { outcome.broad += 1 }
            decisions.append((sequence, decision))
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
        if post.events.isEmpty { outcome.sequence = turn.nextSequence - 1 }
        guard !decisions.isEmpty else { return outcome }
        let traced = trace?.decided(
            places, post.events, app, by: ruleSet, loops: applier.loopCount, since: began)
        applying(
            .changes(
                AppliedPost(
                    messages: messages, decisions: decisions, ruleSet: ruleSet,
                    acceptedAt: acceptedAt, traced: traced)), &turn)
        return outcome
    }

    /// Returns the events of a post that the log does not contain, with their decisions.
    private func fresh(
        of post: DecidedPost, app: String, after removal: UInt64,
        counting outcome: inout PostOutcome, _ turn: inout StoreTransaction
    ) throws -> [(index: Int, decision: RuleSet.Decision)] {
        let isBatch = post.events.count > 1
        var fresh: [(index: Int, decision: RuleSet.Decision)] = []
        fresh.reserveCapacity(post.events.count)
        var freshBytes = 0
        var reused = Faults()
        for (index, event) in post.events.enumerated() {
            if post.repetitions[index] != nil {
                outcome.duplicates += 1
            } else if let known = try turn.event(
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
        try checkLog(adding: freshBytes, to: turn.usage(of: app))
        return fresh
    }

    private func checkLog(adding bytes: Int, to usage: AppUsage) throws(EngineError) {
        do throws(AppQuota.Rejection) {
            try quota.checkLog(adding: bytes, to: usage)
        } catch {
            throw .quota(error)
        }
    }

    // MARK: Starts, reloads, catalogs and apps

    func start(
        _ start: ActivityStart, of app: String, isFull: Bool, _ turn: inout StoreTransaction
    ) throws -> StartTaken? {
        let current = catalogs.entry(of: app, before: turn.nextSequence)
        guard let catalog = current.ruleSet?.catalog else { throw EngineError.unknownApp }
        if let known = try turn.event(
            app: app, source: Self.startSource, id: start.id, after: current.removal)
        {
            let stored = try LogPayload.readStart(known.payload)
            guard stored.json == start.json else {
                throw EngineError.eventIDReused(Faults("id", "was already used by another start"))
            }
            return StartTaken(sequence: known.sequence, duplicate: true, stored.channels)
        }
        guard catalog.activity(type: start.type) != nil else {
            throw EngineError.invalid(Faults("type", "is not declared in the app's catalog"))
        }
        guard !isFull else {
            throw EngineError.quota(.tooManyStarts(limit: RecentStarts.countMax))
        }
        guard start.channel == nil || !start.channels.isEmpty else { return nil }
        let payload = LogPayload.start(start)
        try checkLog(adding: payload.count, to: turn.usage(of: app))
        let entry = try append(
            .start, .start(start), app: app, payload: payload, urgency: start.urgency,
            start: start.id, &turn)
        applying(.reload(entry, nil), &turn)
        return StartTaken(sequence: entry.sequence, duplicate: false, start.channels)
    }

    func reload(
        _ scope: ReloadScope, of app: String, trace: ReloadTrace?, _ turn: inout StoreTransaction
    ) throws -> UInt64 {
        guard let ruleSet = catalogs.entry(of: app, before: turn.nextSequence).ruleSet else {
            throw EngineError.unknownApp
        }
        switch scope {
        case .everything: break
        case .kind(let kind):
            guard ruleSet.since(kind: kind) != nil else {
                throw EngineError.invalid(Faults("kind", "is not declared in the app's catalog"))
            }
        case .client(let client):
            guard registry.record(ClientKey(app: app, client: client)) != nil else {
                throw EngineError.unknownClient
            }
        }
        let entry = try append(
            .reload, .reload(scope), app: app, payload: LogPayload.reload(scope), &turn)
        applying(.reload(entry, trace), &turn)
        return entry.sequence
    }

    func put(
        _ upload: CatalogUpload, _ turn: inout StoreTransaction
    ) throws -> CatalogOutcome? {
        let app = upload.app
        let current = catalogs.entry(of: app, before: turn.nextSequence)
        guard upload.precondition.holds(current.document?.etag) else {
            throw EngineError.preconditionFailed
        }
        if let document = current.document, document.etag == upload.etag {
            return CatalogOutcome(document: document, isNew: false)
        }
        guard current.ruleSet === upload.previous, let ruleSet = upload.compiled else {
            return nil
        }
        try checkLog(adding: upload.payload.count, to: turn.usage(of: app))
        let entry = try append(.catalog, .catalog(ruleSet), app: app, &turn)
        try turn.putCatalog(app: app, sequence: entry.sequence, payload: upload.payload)
        let document = CatalogDocument(
            sequence: entry.sequence, contentType: upload.contentType, body: upload.body,
            etag: upload.etag)
        catalogs.stage(at: entry.sequence) { $0.install(ruleSet, document) }
        applying(.catalog(entry, ruleSet, document), &turn)
        return CatalogOutcome(document: document, isNew: current.document == nil)
    }

    func removeApp(
        _ app: String, _ turn: inout StoreTransaction
    ) throws -> (sequence: UInt64, clients: Int) {
        guard catalogs.entry(of: app, before: turn.nextSequence).document != nil else {
            throw EngineError.unknownApp
        }
        let clients = try turn.deleteApp(app)
        let entry = try append(.removal, .removal, app: app, &turn)
        catalogs.stage(at: entry.sequence) { $0.remove(app: app, at: entry.sequence) }
        applying(.removal(entry), &turn)
        return (entry.sequence, clients)
    }

    /// Opens an epoch with the name of `epoch` and at least its ordinal.
    package func openEpoch(
        _ epoch: EpochID, voidsOlder: Bool, _ turn: inout StoreTransaction
    ) throws {
        let row = try turn.openEpoch(
            id: UInt64(epoch.nonce), atLeast: Int64(epoch.ordinal),
            now: clock.wallMilliseconds(), voidsOlder: voidsOlder,
            kept: store.configuration.epochsMax)
        applying(.epoch(EpochLedger.Epoch(row), voidsOlder: voidsOlder), &turn)
    }

    // MARK: Registrations

    /// The outcome of storing a registration.
    enum Stored: Sendable {
        case stored(isNew: Bool, ShardReceipts)
        /// Another registration or other rules are in force than it was made from.
        case outdated(Data?)
    }

    func put(
        _ update: RegistrationUpdate, _ turn: inout StoreTransaction
    ) throws -> Stored {
        let (key, made) = (update.key, update.replacement)
        let current = try turn.registration(app: key.app, client: key.client)?.payload
        let ruleSet = catalogs.entry(of: key.app, before: turn.nextSequence).ruleSet
        guard current == update.base.payload, ruleSet === update.base.ruleSet else {
            return .outdated(current)
        }
        if current == nil {
            do throws(AppQuota.Rejection) {
                try quota.checkNewClient(of: turn.usage(of: key.app))
            } catch {
                throw EngineError.quota(error)
            }
        }
        let now = clock.wallMilliseconds()
        let isNew = try turn.putRegistration(
            app: key.app, client: key.client, payload: made.payload,
            attributes: made.record.attributes, updatedAt: now, isSeen: update.isSeen)
        let receipts = ShardReceipts(count: applier.loopCount)
        applying(
            .registration(
                AppliedRegistration(
                    record: made.record, key: key, seenAt: update.isSeen ? now : nil,
                    confirms: update.confirms, receipts: receipts)), &turn)
        return .stored(isNew: isNew, receipts)
    }

    /// Puts the removal of clients in force whose rows a job deleted; returns their number.
    func removed(_ keys: [ClientKey], _ turn: inout StoreTransaction) -> Int {
        if !keys.isEmpty { applying(.clientsRemoved(keys), &turn) }
        return keys.count
    }
}
