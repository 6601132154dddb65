/// The queue of the writer that a job waits in. Jobs of one lane run in the order in which they
/// came; lanes take turns.
package enum WriterLane: Sendable, Hashable {
    /// Work that an app or one of its clients asked for; limited to the app's share of the queue.
    case app(String)
    /// The gateway's own work, such as retention.
    case gateway
}
