/// The reader of a node: a ``FeedReader`` with its connection.
package final class PostgresFeed: Sendable {
    /// Something that the reader found, reported on the thread of the loop, which it must not hold
    /// up.
    package enum Report: Sendable, Equatable {
        /// The next batch, to be applied.
        case batch(LogBatch)
        /// The newest position of the log, as asked for at a time of ``PostgresLoop/now``.
        case head(LogPosition, askedAt: Int64)
        /// The node follows the log.
        case ready(LogPosition)
        /// The node does not follow the log.
        case unready(FeedReader.Unreadiness)
        /// The writer has to fence once more, for this connection.
        case needsFence
        /// The writer has to notify, so that the reader can hear it.
        case needsNotification
    }

    /// A command for the thread of the loop.
    fileprivate enum Command: Sendable {
        case fenced(ServerIdentity)
        case unfenced
        case look(at: Int64)
    }

    private let inbox: CommandInbox<Command>

    /// Adds a reader to a loop.
    ///
    /// - Parameters:
    ///   - address: The servers, with the login of the node.
    ///   - requirement: The condition on which a batch is taken for durable.
    ///   - position: The last batch that the node has applied; `nil` to read the log from its first.
    ///   - report: Called on the thread of the loop.
    package init(
        _ address: PostgresAddress, _ requirement: Durability.Requirement,
        after position: LogPosition? = nil, limits: BatchLimits = BatchLimits(),
        on loop: PostgresLoop, report: @escaping @Sendable (Report) -> Void
    ) {
        let inbox = CommandInbox<Command>(loop)
        self.inbox = inbox
        loop.add {
            FeedMember(
                address, inbox,
                reader: FeedReader(
                    requirement, after: position, limits: limits, at: PostgresLoop.now),
                report: report)
        }
    }

    /// Tells the reader the status of the node's writer.
    package func observe(_ status: PostgresWriter.Status) {
        switch status {
        case .ready(let identity): inbox.append(.fenced(identity))
        case .unready: inbox.append(.unfenced)
        }
    }

    /// Asks for the newest position of the log at once. It is reported as ``Report/head(_:askedAt:)``
    /// with this time or a later one, unless the reader does not follow the log.
    package func look(at time: Int64) { inbox.append(.look(at: time)) }
}

/// Acts for a ``FeedReader`` on the thread of the loop.
private final class FeedMember: PostgresLoop.Member {
    private let session: RequestSession<ReadRequest>
    private let inbox: CommandInbox<PostgresFeed.Command>
    private let report: @Sendable (PostgresFeed.Report) -> Void
    private var reader: FeedReader
    private var generator = SystemRandomNumberGenerator()

    init(
        _ address: PostgresAddress, _ inbox: CommandInbox<PostgresFeed.Command>,
        reader: FeedReader, report: @escaping @Sendable (PostgresFeed.Report) -> Void
    ) {
        session = RequestSession(address)
        self.inbox = inbox
        self.reader = reader
        self.report = report
    }

    var interest: (descriptor: Int32, events: Int16)? { session.interest }

    var nextTurn: Int64? { session.nextTurn(or: reader.nextTick) }

    func turn(at now: Int64) {
        for command in inbox.removeAll() {
            switch command {
            case .fenced(let identity): handle(.fenced(identity), at: now)
            case .unfenced: handle(.unfenced, at: now)
            case .look(let time): handle(.asked(time), at: now)
            }
        }
        session.proceed { receive($0, at: now) }
        if let tick = reader.nextTick, tick <= now {
            perform(reader.tick(at: now, using: &generator))
        }
    }

    private func receive(_ event: RequestSession<ReadRequest>.Event, at now: Int64) {
        switch event {
        case .connected: handle(.connected, at: now)
        case .disconnected(let error): handle(.disconnected(error), at: now)
        case .answered(let result): handle(.answered(result), at: now)
        case .row(let row):
            do throws(PostgresError) {
                handle(.batch(try LogBatch(row)), at: now)
            } catch {
                session.disconnect()
                handle(.disconnected(error), at: now)
            }
        case .notified(let process): handle(.notified(byServerProcess: process), at: now)
        }
    }

    private func handle(_ event: FeedReader.Event, at now: Int64) {
        perform(reader.receive(event, at: now, using: &generator))
    }

    private func perform(_ actions: [FeedReader.Action]) {
        for action in actions {
            switch action {
            case .connect(let server): session.connect(to: server)
            case .disconnect: session.disconnect()
            case .send(let requests): session.send(requests)
            case .requestFence: report(.needsFence)
            case .requestNotification: report(.needsNotification)
            case .apply(let batch): report(.batch(batch))
            case .observeHead(let position, let askedAt): report(.head(position, askedAt: askedAt))
            case .becomeReady(let position): report(.ready(position))
            case .becomeUnready(let reason): report(.unready(reason))
            }
        }
    }
}
