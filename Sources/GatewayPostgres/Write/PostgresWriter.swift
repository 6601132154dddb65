/// The writer of a node: a ``BatchWriter`` with its connection.
package final class PostgresWriter: Sendable {
    /// Whether writes are accepted.
    package enum Status: Sendable, Equatable {
        /// Writes are accepted, and what is visible on this server is durable.
        case ready(ServerIdentity)
        /// Writes are refused.
        case unready(BatchWriter.Unreadiness)
    }

    /// A command for the thread of the loop.
    fileprivate enum Command: Sendable {
        case append(
            LogWrite.Content, app: String, removal: Int64, @Sendable (WriteOutcome) -> Void)
        case read(RowReading, @Sendable (RowOutcome) -> Void)
        case notify
        case fence
        case advance(LogPosition)
    }

    private let inbox: CommandInbox<Command>

    /// Adds a writer to a loop.
    ///
    /// - Parameters:
    ///   - address: The servers, with the login of the node.
    ///   - requirement: The promise of an accepted write.
    ///   - position: The position up to which the node knows the log; `nil` if it knows nothing.
    ///   - observe: Called with each change of the status, on the thread of the loop.
    package init(
        _ address: PostgresAddress, _ requirement: Durability.Requirement,
        from position: LogPosition?, limits: BatchLimits = BatchLimits(), on loop: PostgresLoop,
        observe: @escaping @Sendable (Status) -> Void
    ) {
        let inbox = CommandInbox<Command>(loop)
        self.inbox = inbox
        loop.add {
            WriterMember(
                address, inbox,
                writer: BatchWriter(
                    requirement, position: position, limits: limits, at: PostgresLoop.now),
                observe: observe)
        }
    }

    /// Appends a write; see ``LogWrite``.
    ///
    /// - Parameters:
    ///   - removal: The sequence of the app's last removal that the caller knows; 0 for none.
    ///   - complete: Called once with the outcome, on the thread of the loop.
    package func append(
        _ content: LogWrite.Content, app: String, removal: Int64 = 0,
        complete: @escaping @Sendable (WriteOutcome) -> Void
    ) {
        inbox.append(.append(content, app: app, removal: removal, complete))
    }

    /// Reads rows on the primary.
    ///
    /// - Parameter complete: Called once with the outcome, on the thread of the loop.
    package func read(
        _ reading: RowReading, complete: @escaping @Sendable (RowOutcome) -> Void
    ) {
        inbox.append(.read(reading, complete))
    }

    /// Notifies all nodes, this one included, as soon as the connection is idle.
    package func notify() { inbox.append(.notify) }

    /// Fences once more and reports the status again; see ``BatchWriter/requestFence(at:)``.
    package func fence() { inbox.append(.fence) }

    /// Tells the writer a position that was read and is durable.
    package func advance(to position: LogPosition) { inbox.append(.advance(position)) }
}

/// Acts for a ``BatchWriter`` on the thread of the loop.
private final class WriterMember: PostgresLoop.Member {
    private let session: RequestSession<WriteRequest>
    private let inbox: CommandInbox<PostgresWriter.Command>
    private let observe: @Sendable (PostgresWriter.Status) -> Void
    private var writer: BatchWriter
    private var completions: [UInt64: @Sendable (WriteOutcome) -> Void] = [:]
    private var readings: [UInt64: @Sendable (RowOutcome) -> Void] = [:]
    private var nextTicket: UInt64 = 0
    private var generator = SystemRandomNumberGenerator()

    init(
        _ address: PostgresAddress, _ inbox: CommandInbox<PostgresWriter.Command>,
        writer: BatchWriter,
        observe: @escaping @Sendable (PostgresWriter.Status) -> Void
    ) {
        session = RequestSession(address)
        self.inbox = inbox
        self.writer = writer
        self.observe = observe
    }

    deinit {
        for command in inbox.removeAll() {
            switch command {
            case .append(_, _, _, let complete): complete(.refused(.unavailable))
            case .read(_, let complete): complete(.refused(.unavailable))
            case .notify, .fence, .advance: break
            }
        }
        for complete in completions.values { complete(.unknown) }
        for complete in readings.values { complete(.refused(.unavailable)) }
    }

    var interest: (descriptor: Int32, events: Int16)? { session.interest }

    var nextTurn: Int64? { session.nextTurn(or: writer.nextTick) }

    func turn(at now: Int64) {
        for command in inbox.removeAll() { run(command, at: now) }
        session.proceed { receive($0, at: now) }
        if let tick = writer.nextTick, tick <= now {
            perform(writer.tick(at: now, using: &generator), at: now)
        }
    }

    private func run(_ command: PostgresWriter.Command, at now: Int64) {
        switch command {
        case .append(let content, let app, let removal, let complete):
            nextTicket += 1
            completions[nextTicket] = complete
            let write = LogWrite(ticket: nextTicket, app: app, removal: removal, content)
            perform(writer.submit(write, at: now), at: now)
        case .read(let reading, let complete):
            nextTicket += 1
            readings[nextTicket] = complete
            perform(writer.read(reading, ticket: nextTicket, at: now), at: now)
        case .notify: writer.requestNotification()
        case .fence: perform(writer.requestFence(at: now), at: now)
        case .advance(let position): writer.advance(to: position)
        }
    }

    private func receive(_ event: RequestSession<WriteRequest>.Event, at now: Int64) {
        let input: BatchWriter.Event
        switch event {
        case .connected: input = .connected
        case .disconnected(let error): input = .disconnected(error)
        case .answered(let result): input = .answered(result)
        case .row, .notified: return
        }
        perform(writer.receive(input, at: now, using: &generator), at: now)
    }

    private func perform(_ actions: [BatchWriter.Action], at now: Int64) {
        for action in actions {
            switch action {
            case .connect(let server): session.connect(to: server)
            case .disconnect: session.disconnect()
            case .send(let requests): session.send(requests)
            case .complete(let ticket, let outcome):
                completions.removeValue(forKey: ticket)?(outcome)
            case .completeReading(let ticket, let outcome):
                readings.removeValue(forKey: ticket)?(outcome)
            case .becomeReady(let identity): observe(.ready(identity))
            case .becomeUnready(let reason): observe(.unready(reason))
            }
        }
    }
}
