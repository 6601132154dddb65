import DequeModule
import GatewayCore

/// Decides the write path of a node: one group commit in flight at a time.
///
/// After every connect the writer compares the chain at its position, then fences, and only then
/// believes what it reads. A batch is probed, appended and followed by a look at the settings; writes
/// are accepted after all three. Rows are read in the same write to the socket as a probe, and
/// returned after a look at the settings of their own.
///
/// When a connection ends with an append unanswered, the batch is looked for by its random number
/// after the next fence, before anything else is appended: the fence has waited for a statement of
/// the old connection that still ran, and later ones are refused.
///
/// A value without I/O, clock or lock: events come in with the time and a source of randomness,
/// actions come out. Nothing is cancelled or terminated on the server, ever: that would report a
/// commit that no standby has.
package struct BatchWriter: Sendable {
    package enum Event: Sendable {
        /// The connection that was asked for is open.
        case connected
        /// The connection ended or could not be opened.
        case disconnected(PostgresError)
        /// The first unanswered request ended.
        case answered(Result<WriteAnswer, PostgresError>)
    }

    /// An action for the shell, to be done in order.
    package enum Action: Sendable, Equatable {
        /// Connect to the server with this index, modulo their number.
        case connect(server: Int)
        /// Close the connection; nothing more is expected from it.
        case disconnect
        /// Send requests in one write.
        case send([WriteRequest])
        /// Give the outcome of a write.
        case complete(ticket: UInt64, WriteOutcome)
        /// Give the outcome of a reading.
        case completeReading(ticket: UInt64, RowOutcome)
        /// The writer accepts writes; what is visible on this server is durable.
        case becomeReady(ServerIdentity)
        /// The writer accepts nothing.
        case becomeUnready(Unreadiness)
    }

    /// The reason why a node does not accept writes.
    package enum Unreadiness: Sendable, Equatable, CustomStringConvertible {
        /// No server answers.
        case disconnected(PostgresError)
        /// The server does not keep what a 202 promises.
        case notDurable(String)
        /// The schema, the login or the settings have to be changed by an operator.
        case misconfigured(PostgresError)
        /// The server has another history than the node: it writes nothing more.
        case tailLost

        package var description: String {
            switch self {
            case .disconnected(let error), .misconfigured(let error): "\(error)"
            case .notDurable(let reason): reason
            case .tailLost: "the server's log has another history; the node ends"
            }
        }
    }

    enum Phase {
        /// Waits before the next attempt to connect.
        case idle(until: Int64)
        case connecting(deadline: Int64)
        case identifying
        case fencing(ServerIdentity)
        case finding(PendingBatch, ServerIdentity, LogPosition?)
        /// Connected, with nothing in flight.
        case ready
        case probing(PendingBatch)
        /// Reads rows, with no write that waits.
        case reading
        /// Waits for the append, unless the batch has nothing new, and then for the settings.
        case confirming(PendingBatch, appended: Result<LogPosition?, PostgresError>)
        /// Sends a notification that a batch left out.
        case announcing
        /// Deletes rows of removed apps.
        case deleting
        /// Found another history, and does nothing more.
        case halted
    }

    /// The maximum number of rows of removed apps that are deleted between two batches.
    static let deletedRows: Int32 = 50

    let requirement: Durability.Requirement
    let limits: BatchLimits
    var phase: Phase
    /// The highest position that is known to be durable.
    private(set) var position: LogPosition?
    /// The position whose chain the server was asked for at the last connect; others may follow it
    /// before the answer.
    private(set) var asked: LogPosition?
    /// The identity of the log, known after the first connection.
    var logID: UInt128?
    var generation: Int64 = 0
    /// A batch that may or may not have been appended.
    var unresolved: PendingBatch?
    /// Writes that were not appended, for the next batch.
    var retried: [PendingBatch.Entry] = []
    /// Whether the last batch was raced: the next one has nothing else, so that the write that raced
    /// leaves it as a conflict, and no other comes that might race again.
    var wasRaced = false
    var waiting: FairQueue<String, PendingBatch.Entry>
    /// The tickets of waiting writes; those of completed ones may still be in the queue.
    var tickets: Set<UInt64> = []
    /// The deadlines of waiting writes, earliest first; some may have been completed.
    var deadlines: Deque<(ticket: UInt64, deadline: Int64)> = []
    var readings = RowReadings()
    /// Whether rows of removed apps may be left to delete; looked at after every connect, because
    /// a node may have stopped before it had deleted them all.
    var mustDelete = false
    /// Whether the last request deleted rows: then writes come first.
    var hasDeleted = false
    var pacing: RequestPacing
    /// The time since which the writer is not ready; `nil` if it is.
    var unreadySince: Int64?
    private var notifiedAt: Int64 = .min / 2
    private var mustNotify = false
    /// The server to fence once more, for another connection of the node.
    var mustFence: ServerIdentity?
    /// The server that the writer is ready on.
    private var identity: ServerIdentity?
    var actions: [Action] = []

    /// Creates a writer that connects at its first ``tick(at:using:)``.
    ///
    /// - Parameters:
    ///   - requirement: What an accepted post promises.
    ///   - position: The position up to which the node knows the log; `nil` if it knows nothing,
    ///     so that any history is right.
    package init(
        _ requirement: Durability.Requirement, position: LogPosition?,
        limits: BatchLimits = BatchLimits(), at now: Int64
    ) {
        self.requirement = requirement
        self.limits = limits
        pacing = RequestPacing(deadlineMilliseconds: limits.deadline)
        self.position = position
        phase = .idle(until: now)
        unreadySince = now
        waiting = FairQueue(
            limits: .init(count: limits.pendingPosts, cost: limits.pendingBytes))
    }

    // MARK: Events

    /// Accepts a write, whose outcome is an action of this or a later call.
    package mutating func submit(_ write: LogWrite, at now: Int64) -> [Action] {
        let bytes = write.byteCount
        let entry = PendingBatch.Entry(write: write, deadline: now + limits.deadline)
        var refusal: WriteRefusal?
        if write.recordCount > limits.changes || bytes > limits.bytes {
            refusal = .tooLarge
        } else if !write.hasStorableNames {
            refusal = .invalidName
        } else if let since = unreadySince, now - since >= limits.deadline {
            refusal = .unavailable
        } else if waiting.append(entry, for: write.app, cost: bytes) != nil {
            refusal = .busy
        }
        if let refusal { return [.complete(ticket: write.ticket, .refused(refusal))] }
        tickets.insert(write.ticket)
        deadlines.append((write.ticket, entry.deadline))
        beginBatch(at: now)
        return removeActions()
    }

    /// Accepts a reading, whose outcome is an action of this or a later call.
    package mutating func read(_ reading: RowReading, ticket: UInt64, at now: Int64) -> [Action] {
        var refusal: WriteRefusal?
        if let since = unreadySince, now - since >= limits.deadline {
            refusal = .unavailable
        } else {
            refusal = readings.append(
                reading, ticket: ticket, deadline: now + limits.deadline, limits: limits)
        }
        if let refusal { return [.completeReading(ticket: ticket, .refused(refusal))] }
        beginBatch(at: now)
        return removeActions()
    }

    /// Handles an event of the connection.
    package mutating func receive(
        _ event: Event, at now: Int64, using generator: inout some RandomNumberGenerator
    ) -> [Action] {
        switch event {
        case .connected:
            guard case .connecting = phase else { break }
            phase = .identifying
            asked = position
            send([.identify(at: position?.last ?? -1)], at: now)
        case .disconnected(let error): failed(error, at: now, using: &generator)
        case .answered(let answer):
            guard pacing.didReceiveAnswer(at: now) else { break }
            receive(answer, at: now, using: &generator)
        }
        return removeActions()
    }

    /// Does what is due; to be called at ``nextTick``.
    package mutating func tick(
        at now: Int64, using generator: inout some RandomNumberGenerator
    ) -> [Action] {
        expire(at: now)
        switch phase {
        case .idle(let until) where until <= now:
            phase = .connecting(deadline: now + limits.connectDeadline)
            actions.append(.connect(server: pacing.server))
        case .connecting(let deadline) where deadline <= now:
            disconnect(.disconnected(.deadline), at: now, using: &generator)
        case .ready: announce(at: now)
        default: break
        }
        if let deadline = pacing.deadline, deadline <= now {
            disconnect(.disconnected(.deadline), at: now, using: &generator)
        }
        return removeActions()
    }

    /// Tells the writer a position that was read and is durable.
    package mutating func advance(to position: LogPosition) {
        if position.last > self.position?.last ?? -1 { self.position = position }
    }

    /// The time of the next ``tick(at:using:)``; `nil` if only an event can change anything.
    package var nextTick: Int64? {
        let phaseTick: Int64? =
            switch phase {
            case .idle(let until): until
            case .connecting(let deadline): deadline
            case .ready: mustNotify ? notifiedAt + limits.notifyInterval : nil
            default: nil
            }
        let batch: PendingBatch? =
            switch phase {
            case .probing(let batch), .confirming(let batch, _), .finding(let batch, _, _): batch
            default: unresolved
            }
        return [
            phaseTick, pacing.deadline, deadlines.first?.deadline, batch?.nextDeadline,
            retried.lazy.map(\.deadline).min(), readings.nextDeadline,
        ].compactMap { $0 }.min()
    }

    private mutating func removeActions() -> [Action] {
        defer { actions = [] }
        return actions
    }

    // MARK: Actions

    mutating func complete(_ ticket: UInt64, _ outcome: WriteOutcome) {
        actions.append(.complete(ticket: ticket, outcome))
    }

    mutating func send(_ requests: [WriteRequest], at now: Int64) {
        pacing.didSend(requests.count, at: now)
        actions.append(.send(requests))
    }

    /// Returns whether the next look at the settings also notifies the other nodes, which a node
    /// does at most once in an interval.
    mutating func notifiesNow(at now: Int64) -> Bool {
        mustNotify = now - notifiedAt < limits.notifyInterval
        if !mustNotify { notifiedAt = now }
        return !mustNotify
    }

    /// Sends a notification that is due.
    mutating func announce(at now: Int64) {
        guard case .ready = phase, mustNotify, notifiesNow(at: now) else { return }
        phase = .announcing
        send([.readDurability(notifies: true)], at: now)
    }

    /// Has the writer notify all nodes, itself included, as soon as it can.
    package mutating func requestNotification() { mustNotify = true }

    /// Has the writer fence once more and then become ready again, for another connection of the
    /// node: what that reads is durable only behind a commit of the node's own.
    package mutating func requestFence(at now: Int64) -> [Action] {
        mustFence = identity
        beginBatch(at: now)
        return removeActions()
    }

    // MARK: Connection

    /// The connection has done what makes the writer ready.
    mutating func becomeReady(_ identity: ServerIdentity, at now: Int64) {
        pacing.didSucceed()
        unreadySince = nil
        self.identity = identity
        mustDelete = true
        phase = .ready
        actions.append(.becomeReady(identity))
        beginBatch(at: now)
    }

    /// Gives the connection up, keeps what is unknown, and connects again after a pause.
    mutating func disconnect(
        _ reason: Unreadiness, at now: Int64, using generator: inout some RandomNumberGenerator
    ) {
        switch phase {
        // Already given up.
        case .idle, .halted: return
        case .probing(let batch): retried = batch.waiting + retried
        case .confirming(let batch, let appended):
            if batch.call != nil, Self.isUnknown(appended) {
                unresolved = batch
            } else {
                retried = batch.waiting + retried
            }
        case .finding(let batch, _, _): unresolved = batch
        case .connecting, .identifying, .fencing, .ready, .reading, .announcing, .deleting: break
        }
        readings.restart()
        if case .announcing = phase { mustNotify = true }
        if unreadySince == nil { unreadySince = now }
        // The next connection fences anyway.
        (identity, mustFence) = (nil, nil)
        pacing.reset()
        actions += [.disconnect, .becomeUnready(reason)]
        if reason == .tailLost {
            phase = .halted
            return
        }
        phase = .idle(until: pacing.nextAttempt(at: now, using: &generator))
    }

    /// Returns whether an append may have been committed: its answer is missing, or the settings
    /// after it are.
    private static func isUnknown(_ appended: Result<LogPosition?, PostgresError>) -> Bool {
        if case .failure(let error) = appended { !error.wroteNothing } else { true }
    }
}
