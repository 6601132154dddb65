import Foundation
import GatewayCore
import GatewayOperations
import GatewayStorage

extension PushScheduler {
    /// Creates a scheduler with the clients that can be pushed to and their stored state.
    init(
        _ shard: Shard, terms: Terms, hash: SipHash, starts: RecentStarts,
        restoredFrom store: SQLiteStore, _ registry: Registry, clock: GatewayClock
    ) throws {
        self.init(shard, terms: terms, hash: hash, starts: starts)
        let (now, wall) = (clock.now(), clock.wallMilliseconds())
        let clear = try min(store.pushesClearUpTo(), position)
        let clients = try Self.clients(
            in: store, registry, budget: terms.budget, now: now, wall: wall)
        for client in clients {
            restore(
                client.record, app: client.key.app, client.saved,
                clear: client.saved == nil ? 0 : clear, now: now, wall: wall)
        }
        if try store.hasVoidPositions() {
            // A tail of the log is lost, and clients that only receive pushes present no cursor
            // that would show it.
            forgetPositions(now: now)
            let changed = takeChanged(limit: .max, now: now, wall: wall)
            try store.replaceVoidPositions(
                with: changed.map { PushClientRow($0.key, $0.saved) })
        }
        lookAtRestored(now: now)
    }

    /// Returns the clients that can be pushed to, in the order in which they are restored, with the
    /// state that a store has of them. Blocks.
    static func clients(
        in store: SQLiteStore, _ registry: Registry, budget terms: PushBudget.Terms, now: Int64,
        wall: Int64
    ) throws -> [PushLoop.RestoredClient] {
        var saved: [ClientKey: PushScheduler.SavedClient] = [:]
        try store.pushClients { rows in
            for row in rows {
                guard let payload = row.payload else { continue }
                saved[ClientKey(app: row.key.app, client: row.key.client)] =
                    try UnreadableRow.naming("the state of pushes to", row.key) {
                        try SavedClient(payload, budget: terms, now: now, wall: wall)
                    }
            }
        }
        var clients = registry.pushable.map { key, record in
            PushLoop.RestoredClient(
                key: key, record: record, saved: saved.removeValue(forKey: key))
        }
        // Clients whose last address went are owed what they miss until they have another.
        for (key, state) in saved {
            guard let record = registry.record(key) else { continue }
            clients.append(PushLoop.RestoredClient(key: key, record: record, saved: state))
        }
        return clients
    }
}

extension PushClientRow {
    /// Creates the row of a client's stored state; `nil` deletes it.
    init(_ key: ClientKey, _ saved: [UInt8]?) {
        self.init(
            key: RegistrationKey(app: key.app, client: key.client), payload: saved.map { Data($0) })
    }
}
