import Synchronization

/// The log of a cluster as one node uses it: a writer and a reader on a thread of their own, whose
/// connections lead to one server.
package final class PostgresLog: Sendable {
    /// An event of the log, reported on its thread, which must not be held up.
    package enum Event: Sendable, Equatable {
        /// The next batch, in order and durable, also those of this node.
        case batch(LogBatch)
        /// The newest position of the log, as asked for at a time of ``PostgresLoop/now``.
        case head(LogPosition, askedAt: Int64)
        /// The writer's status changed.
        case writer(PostgresWriter.Status)
        /// The node follows the log from here on.
        case following(LogPosition)
        /// The node does not follow the log.
        case notFollowing(FeedReader.Unreadiness)
    }

    /// Breaks the circle of the two, which report to each other.
    private final class Relay: Sendable {
        let feed = Mutex<PostgresFeed?>(nil)
    }

    private let loop: PostgresLoop
    private let writer: PostgresWriter
    private let feed: PostgresFeed

    /// Connects; nothing waits for it.
    ///
    /// - Parameters:
    ///   - address: The servers, with the login of the node.
    ///   - requirement: What an accepted post promises.
    ///   - position: The last batch that the node has applied; `nil` to read the log from its first.
    ///   - report: Called on the thread of the log.
    /// - Throws: `PostgresError` when the kernel provides no descriptor.
    package init(
        _ address: PostgresAddress, _ requirement: Durability.Requirement,
        after position: LogPosition? = nil, limits: BatchLimits = BatchLimits(),
        report: @escaping @Sendable (Event) -> Void
    ) throws(PostgresError) {
        loop = try PostgresLoop(name: "log")
        let relay = Relay()
        let writer = PostgresWriter(
            address, requirement, from: position, limits: limits, on: loop
        ) { status in
            relay.feed.withLock { $0 }?.observe(status)
            report(.writer(status))
        }
        let feed = PostgresFeed(address, requirement, after: position, limits: limits, on: loop) {
            switch $0 {
            case .batch(let batch):
                writer.advance(to: batch.position)
                report(.batch(batch))
            case .head(let position, let askedAt): report(.head(position, askedAt: askedAt))
            case .ready(let position): report(.following(position))
            case .unready(let reason): report(.notFollowing(reason))
            case .needsFence: writer.fence()
            case .needsNotification: writer.notify()
            }
        }
        self.writer = writer
        self.feed = feed
        relay.feed.withLock { $0 = feed }
        // A status of the writer that came before is reported again after the fence that the reader
        // asks for once it is connected.
    }

    deinit { loop.end() }

    /// Appends a write; see ``LogWrite``.
    ///
    /// - Parameters:
    ///   - removal: The sequence of the app's last removal that the node has applied; 0 for none.
    ///   - complete: Called once with the outcome, on the thread of the log.
    package func append(
        _ content: LogWrite.Content, app: String, removal: Int64 = 0,
        complete: @escaping @Sendable (WriteOutcome) -> Void
    ) {
        writer.append(content, app: app, removal: removal) { [feed] outcome in
            // The caller waits for the reader of this node. The notification, which is sent once in
            // several milliseconds, is for other nodes.
            switch outcome {
            case .accepted, .written: feed.look(at: 0)
            case .reused, .conflict, .refused, .unknown: break
            }
            complete(outcome)
        }
    }

    /// Reads rows on the primary.
    ///
    /// - Parameter complete: Called once with the outcome, on the thread of the log.
    package func read(
        _ reading: RowReading, complete: @escaping @Sendable (RowOutcome) -> Void
    ) {
        writer.read(reading, complete: complete)
    }

    /// Asks for the newest position of the log at once; it is reported as
    /// ``Event/head(_:askedAt:)`` with this time or a later one.
    package func look(at time: Int64) { feed.look(at: time) }
}
