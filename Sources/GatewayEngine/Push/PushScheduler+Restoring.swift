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
        for (key, record) in registry.pushable {
            restore(record, app: key.app, saved[key], now: now, wall: wall)
        }
        if try store.hasVoidPositions() {
            // A tail of the log is lost, and clients that only receive pushes present no cursor
            // that would show it.
            forgetPositions(now: now)
            let changed = takeChanged(limit: .max, now: now, wall: wall)
            try store.replaceVoidPositions(
                with: changed.map { PushClientRow($0.key, $0.saved) })
        }
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
