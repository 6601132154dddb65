import Synchronization

/// The context that new connections get. Replacing it leaves the connections that exist as they are.
package final class TLSIdentity: Sendable {
    private let held: Mutex<TLSContext>

    /// Starts with `context`.
    package init(_ context: TLSContext) {
        held = Mutex(context)
    }

    /// The context for a connection accepted now.
    package var current: TLSContext { held.withLock { $0 } }

    /// From now on connections get `context`. Tickets issued under the old one no longer resume:
    /// each context has ticket keys of its own, so that a removed client CA takes effect at once.
    package func replace(with context: TLSContext) {
        held.withLock { $0 = context }
    }
}
