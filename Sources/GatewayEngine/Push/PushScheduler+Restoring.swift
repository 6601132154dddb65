import GatewayCore
import GatewayPush
import GatewayRecords
import GatewayStorage

extension PushScheduler {
    /// Creates a scheduler with the clients that can be pushed to and their stored state.
    init(
        _ shard: Shard, terms: Terms, hash: SipHash, restoredFrom store: SQLiteStore,
        _ registry: Registry, clock: GatewayClock
    ) throws {
        self.init(shard, terms: terms, hash: hash)
        var saved: [ClientKey: PushScheduler.SavedClient] = [:]
        try store.pushClients { rows in
            for row in rows {
                guard let payload = row.payload else { continue }
                saved[ClientKey(app: row.key.app, client: row.key.client)] =
                    try UnreadableRow.naming("the state of pushes to", row.key) {
                        try PushClientPayload.read(payload)
                    }
            }
        }
        let (now, wall) = (clock.now(), clock.wallMilliseconds())
        let clear = try min(store.pushesClearUpTo(), position)
        for (key, record) in registry.pushable {
            let state = saved.removeValue(forKey: key)
            restore(
                record, app: key.app, state, clear: state == nil ? 0 : clear, now: now, wall: wall)
        }
        // Clients whose last address went are owed what they miss until they have another.
        for (key, state) in saved {
            guard let record = registry.record(key) else { continue }
            restore(record, app: key.app, state, clear: clear, now: now, wall: wall)
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
}

extension PushClientRow {
    /// Creates the row of a client's stored state; `nil` deletes it.
    init(_ key: ClientKey, _ saved: PushScheduler.SavedClient?) {
        self.init(
            key: RegistrationKey(app: key.app, client: key.client),
            payload: saved.map(PushClientPayload.data))
    }
}
