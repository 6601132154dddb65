import Synchronization

/// Waits until every shard has applied a registration.
package final class ShardReceipts: Sendable {
    private struct State {
        var missing: Int
        var lowest = UInt64.max
        var waiter: CheckedContinuation<UInt64, Never>?
    }

    private let state: Mutex<State>

    package init(count: Int) {
        state = Mutex(State(missing: count))
    }

    func record(_ position: UInt64) {
        let (waiter, lowest) = state.withLock {
            state -> (CheckedContinuation<UInt64, Never>?, UInt64) in
            state.missing -= 1
            state.lowest = min(state.lowest, position)
            guard state.missing == 0 else { return (nil, state.lowest) }
            defer { state.waiter = nil }
            return (state.waiter, state.lowest)
        }
        waiter?.resume(returning: lowest)
    }

    /// The lowest position, once every shard has applied it.
    var lowestPosition: UInt64 {
        get async {
            await withCheckedContinuation { continuation in
                let lowest = state.withLock { state -> UInt64? in
                    if state.missing <= 0 { return state.lowest }
                    state.waiter = continuation
                    return nil
                }
                if let lowest { continuation.resume(returning: lowest) }
            }
        }
    }
}
