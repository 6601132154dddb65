import Foundation
import GatewayCore
import GatewayOperations
import GatewayStorage
import WidgetModel

extension EngineLog {
    /// Repeats a transaction of another gateway's store, and puts it in force.
    ///
    /// - Parameters:
    ///   - position: The store's position after the transaction.
    ///   - previous: The store's position before it. At any other position nothing is done.
    /// - Throws: ``UnreadableRow``, `StoreError`.
    @discardableResult
    package func repeatBatch(
        _ operations: [StoreOperation], to position: Data, from previous: Data,
        _ turn: inout StoreTransaction
    ) throws -> Bool {
        var head = turn.nextSequence - 1
        guard try turn.repeatOperations(operations, to: position, from: previous) else {
            return false
        }
        // Of an append of this gateway's own that failed, when it led.
        catalogs.rollBack(before: head + 1)
        var reading = BatchReading(
            decoder: LogDecoder(catalogs: catalogs.current, hashes: catalogs.hashes),
            catalogs: operations)
        var effects: [(effect: LogEffect, head: UInt64)] = []
        for operation in operations {
            if case .append(let row) = operation { head = row.sequence }
            guard
                let effect = try reading.effect(of: operation, loops: applier.loopCount, registry)
            else { continue }
            // As the changes of a post: one after the other in the list is one for all.
            if case .changes(let more) = effect, case .changes(var post)? = effects.last?.effect,
                post.ruleSet === more.ruleSet, post.acceptedAt == more.acceptedAt
            {
                effects.removeLast()
                post.append(more)
                effects.append((.changes(post), head))
            } else {
                effects.append((effect, head))
            }
        }
        turn.afterCommit { [applier, effects] in
            for (effect, head) in effects { applier.apply(effect, head: head) }
        }
        turn.afterEffects { [applier] in applier.publish() }
        return true
    }
}

/// Reads what a batch changes, row by row.
private struct BatchReading {
    private var decoder: LogDecoder
    private var catalogs: [UInt64: CatalogRow] = [:]

    init(decoder: LogDecoder, catalogs operations: [StoreOperation]) {
        self.decoder = decoder
        for case .putCatalog(let row) in operations { catalogs[row.sequence] = row }
    }

    /// Returns what an operation changes in memory; `nil` for nothing.
    mutating func effect(
        of operation: StoreOperation, loops: Int, _ registry: Registry
    ) throws -> LogEffect? {
        switch operation {
        case .append(let row): return try effect(of: row)
        case .putRegistration(let row, _, let isSeen):
            let stored = try UnreadableRow.naming("the registration of", row.key) {
                try StoredRegistration(row.payload, limits: .none)
            }
            let record = stored.record(of: row.key.client)
            let key = ClientKey(app: row.key.app, client: row.key.client)
            return .registration(
                AppliedRegistration(
                    record: record, key: key, seenAt: isSeen ? row.updatedAt : nil,
                    confirms: registry.record(key)?.isSame(as: record) == true,
                    receipts: ShardReceipts(count: loops)))
        case .deleteRegistration(let key):
            return .clientsRemoved([ClientKey(app: key.app, client: key.client)])
        case .touch(let key, let at):
            return .seen(ClientKey(app: key.app, client: key.client), at: at)
        case .openEpoch(let row, let voidsOlder, _):
            return .epoch(EpochLedger.Epoch(row), voidsOlder: voidsOlder)
        case .putCatalog, .deleteApp, .putPushClient, .appendPushAttempt, .prunePushAttempts,
            .prune, .putProviderToken, .setMeta:
            // In force with the row of the log, or only on disk.
            return nil
        }
    }

    private mutating func effect(of row: LogRow) throws -> LogEffect {
        let ruleSet = decoder.catalogs.decider.ruleSets[row.app]
        let entry = try decoder.entry(of: row, catalog: catalogs[row.sequence])
        switch entry.body {
        case .change(let decision, _):
            guard let ruleSet else { return .reload(entry, nil) }
            return .changes(
                AppliedPost(
                    messages: [.entry(entry)], decisions: [(row.sequence, decision)],
                    ruleSet: ruleSet, acceptedAt: row.acceptedAt, traced: nil))
        case .catalog(let ruleSet):
            guard let document = decoder.catalogs.documents[row.app] else {
                return .reload(entry, nil)
            }
            return .catalog(entry, ruleSet, document)
        case .reload, .start, .registration: return .reload(entry, nil)
        case .removal: return .removal(entry)
        }
    }
}

extension ClientRecord {
    /// Whether another record differs only in what is confirmed.
    fileprivate func isSame(as other: ClientRecord) -> Bool {
        registration == other.registration && origins == other.origins && digest == other.digest
            && since == other.since && addressedAt == other.addressedAt
    }
}
