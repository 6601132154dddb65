/// The queue of the writer that a job waits in. Jobs of one queue run in the order of their
/// submission; queues take turns.
package enum WriterLane: Sendable, Hashable {
    /// Work for an app or one of its clients; limited to the app's share of the queue.
    case app(String)
    /// The gateway's own work, such as retention.
    case gateway
}
