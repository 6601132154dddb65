import Synchronization

/// The context for new connections. Replacing it leaves existing connections as they are.
package final class TLSIdentity: Sendable {
    private let held: Mutex<TLSContext>

    /// An identity that starts with `context`.
    package init(_ context: TLSContext) {
        held = Mutex(context)
    }

    /// The context for a connection accepted now.
    package var current: TLSContext { held.withLock { $0 } }

    /// Uses `context` for new connections. Tickets issued under the old context no longer resume,
    /// because each context has its own ticket keys by default: removing a client CA takes effect
    /// at once.
    package func replace(with context: TLSContext) {
        held.withLock { $0 = context }
    }
}
