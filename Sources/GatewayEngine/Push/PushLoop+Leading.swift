import Dispatch
import GatewayCore
import GatewayStorage
import NIOCore

/// Gateways that share a log: the leader pushes; the others keep what they need to begin.
extension PushLoop {
    /// The loop's duty towards clients.
    enum Duty {
        case pushing
        /// Another gateway pushes: the loop applies the log, and knows no client.
        case resting
        /// The clients are restored, in portions, before anything else is applied.
        case restoring(ArraySlice<RestoredClient>, clear: UInt64)
    }

    /// A client with the state that the store has of its pushes.
    struct RestoredClient: Sendable {
        let key: ClientKey
        let record: ClientRecord
        let saved: PushScheduler.SavedClient?
    }

    /// Begins to push, with the state that the store has of each client. Returns when no client is
    /// left to be restored, when the loop rests again, or when the task is cancelled.
    ///
    /// - Throws: `StoreError`; ``UnreadableRow``.
    package func lead(from store: SQLiteStore) async throws {
        let budget = try await loop.submit { [self] in scheduler.terms.budget }.get()
        let (began, wall) = (now, clock.wallMilliseconds())
        let (clients, clear) = try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { [registry] in
                continuation.resume(
                    with: Result {
                        (
                            try PushScheduler.clients(
                                in: store, registry, budget: budget, now: began, wall: wall),
                            try store.pushesClearUpTo()
                        )
                    })
            }
        }
        guard !Task.isCancelled else { return }
        try await loop.submit { [self] in
            duty = .restoring(clients[...], clear: min(clear, scheduler.position))
            takeEvents()
        }.get()
        while !Task.isCancelled,
            try await loop.submit({ if case .restoring = self.duty { true } else { false } }).get()
        {
            // Behind the portion that the loop works on.
        }
        guard try store.hasVoidPositions() else { return }
        try await loop.submit { [self] in
            if case .pushing = duty { forgetPositions(now: now) }
        }.get()
    }

    /// Stops to push: another gateway does. The results of pushes in flight are not recorded, and
    /// that gateway repeats them.
    package func rest() async {
        try? await loop.submit { [self] in
            duty = .resting
            attempts.removeAll()
            for key in scheduler.keys { scheduler.release(key) }
            notePosition()
        }.get()
    }

    /// The contact of a client with any gateway.
    func heard(of key: ClientKey) -> PushScheduler.Evidence {
        let seen = registry.client(key)
        return .init(
            confirmed: seen?.hearing.confirmed ?? 0, isStreaming: seen?.streams ?? 0 > 0)
    }

    /// Restores some clients; returns whether there were any.
    func restorePortion(now: Int64) -> Bool {
        guard case .restoring(var rest, let clear) = duty else { return false }
        let wall = clock.wallMilliseconds()
        for client in rest.prefix(Self.restoredMax) {
            // Removed meanwhile, it is not registered.
            guard let record = registry.record(client.key) else { continue }
            scheduler.restore(
                record, app: client.key.app, client.saved, clear: client.saved == nil ? 0 : clear,
                heard: heard(of: client.key), now: now, wall: wall)
        }
        rest = rest.dropFirst(Self.restoredMax)
        duty = rest.isEmpty ? .pushing : .restoring(rest, clear: clear)
        if rest.isEmpty { scheduler.lookAtRestored(now: now) }
        return true
    }
}
