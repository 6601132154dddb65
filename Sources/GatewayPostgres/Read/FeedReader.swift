/// Decides the reading of the log: every batch once, in order, without a gap, and only what is
/// durable.
///
/// Each look asks the primary for the newest position and then for the settings; batches are read
/// through that bound only. The first row of each answer is the batch that the reader already has:
/// another chain, or none, means that the history behind some earlier batch was lost. The reader
/// then reads nothing more.
///
/// A value without I/O, clock or lock, like ``BatchWriter``.
package struct FeedReader: Sendable {
    package enum Event: Sendable {
        /// The connection that was asked for is open.
        case connected
        /// The connection ended or could not be opened.
        case disconnected(PostgresError)
        /// The first unanswered request ended.
        case answered(Result<ReadAnswer, PostgresError>)
        /// A batch of the answer under way.
        case batch(LogBatch)
        /// The newest position is wanted at once, as of a time or later.
        case asked(Int64)
        /// A notification came.
        case notified(byServerProcess: Int32)
        /// The node's writer has fenced: what is visible on that server is durable.
        case fenced(ServerIdentity)
        /// The node's writer has no connection.
        case unfenced
    }

    /// An action for the shell, to be done in order.
    package enum Action: Sendable, Equatable {
        /// Connect to the server with this index, modulo their number.
        case connect(server: Int)
        /// Close the connection; nothing more is expected from it.
        case disconnect
        /// Send requests in one write.
        case send([ReadRequest])
        /// Have the node's writer fence once more, for this connection.
        case requestFence
        /// Have the node's writer notify, so that the reader can hear it.
        case requestNotification
        case apply(LogBatch)
        /// The newest position of the log, as asked for at a time.
        case observeHead(LogPosition, askedAt: Int64)
        /// The reader has applied the head that it first saw, and hears notifications.
        case becomeReady(LogPosition)
        /// The reader is behind, or hears nothing.
        case becomeUnready(Unreadiness)
    }

    /// The reason why a node does not follow the log.
    package enum Unreadiness: Sendable, Equatable, CustomStringConvertible {
        /// No server answers.
        case disconnected(PostgresError)
        /// The server does not keep what is visible.
        case notDurable(String)
        /// The node has not written on the server yet, so what is visible may be lost.
        case unfenced
        /// The node's own notification did not come.
        case deaf
        /// The server has another history than the node: it reads nothing more.
        case tailLost

        package var description: String {
            switch self {
            case .disconnected(let error): "\(error)"
            case .notDurable(let reason): reason
            case .unfenced: "the node has not written on the server yet"
            case .deaf:
                "the node does not hear its own notification; a pooler may be in the way: connect"
                    + " to the server itself"
            case .tailLost: "the server's log has another history; the node ends"
            }
        }
    }

    private enum Phase {
        /// Waits before the next attempt to connect.
        case idle(until: Int64)
        case connecting(deadline: Int64)
        case starting
        /// Waits for a fence on the server that started then.
        case unfenced(startedAt: Int64)
        /// Waits for a notification, or for the next look without one.
        case resting(until: Int64)
        case looking(head: LogPosition?, askedAt: Int64)
        /// Reads up to the bound; `verified` when the batch that the reader has was seen first.
        case reading(bound: LogPosition, isVerified: Bool)
        /// Found another history, and does nothing more.
        case halted
    }

    /// The time between two looks without a notification, milliseconds.
    static let lookInterval: Int64 = 100
    /// The longest time to hear the node's own notification, milliseconds.
    static let echoDeadline: Int64 = 2_000

    private let requirement: Durability.Requirement
    private let limits: BatchLimits
    private var phase: Phase
    /// The position of the last batch that was applied.
    package private(set) var position: LogPosition?
    /// The server that the writer has fenced, once this connection was open.
    private var fenced: ServerIdentity?
    private var startedAt: Int64?
    private var pacing: RequestPacing
    /// The unanswered requests whose answers are void, because the fence was lost meanwhile.
    private var void = 0
    /// Whether a notification came since the last look began.
    private var isWoken = false
    /// The latest time for which the newest position was wanted; the next look was asked then, or
    /// later.
    private var wantedAt: Int64 = .min
    /// Whether the node has heard itself on this connection; until then the time of the alarm.
    private var hasHeard = false
    private var echoDeadline: Int64?
    /// The position to apply before the reader is ready; `nil` until the first look.
    private var readyAt: Int64?
    private var isReady = false
    /// The last reason that was reported, unless the reader is ready.
    private var unreadiness: Unreadiness?
    /// Whether the answer under way brought a batch that was applied.
    private var hasApplied = false
    private var actions: [Action] = []

    /// Creates a reader that connects at its first ``tick(at:using:)``.
    ///
    /// - Parameters:
    ///   - requirement: The condition on which a batch is taken for durable.
    ///   - position: The last batch that the node has applied; `nil` to read the log from its first.
    package init(
        _ requirement: Durability.Requirement, after position: LogPosition? = nil,
        limits: BatchLimits = BatchLimits(), at now: Int64
    ) {
        self.requirement = requirement
        self.position = position
        self.limits = limits
        pacing = RequestPacing(deadlineMilliseconds: limits.deadline)
        phase = .idle(until: now)
    }

    // MARK: Events

    /// Handles an event.
    package mutating func receive(
        _ event: Event, at now: Int64, using generator: inout some RandomNumberGenerator
    ) -> [Action] {
        switch event {
        case .connected:
            guard case .connecting = phase else { break }
            phase = .starting
            send([.listen, .readStart], at: now)
        case .disconnected(let error): disconnect(.disconnected(error), at: now, using: &generator)
        case .fenced(let identity):
            fenced = identity
            believe(at: now, using: &generator)
        case .unfenced:
            fenced = nil
            becomeUnfenced()
        case .asked(let time):
            isWoken = true
            wantedAt = max(wantedAt, time)
            look(at: now)
        case .notified(let process):
            isWoken = true
            if process == fenced?.process { hear() }
            look(at: now)
        case .batch(let batch):
            guard pacing.unanswered > 0 else { break }
            pacing.didReceivePart(at: now)
            read(batch)
        case .answered(let answer):
            guard pacing.didReceiveAnswer(at: now) else { break }
            if void > 0, case .success = answer {
                void -= 1
                look(at: now)
            } else {
                receive(answer, at: now, using: &generator)
            }
        }
        return removeActions()
    }

    /// Does what is due; to be called at ``nextTick``.
    package mutating func tick(
        at now: Int64, using generator: inout some RandomNumberGenerator
    ) -> [Action] {
        switch phase {
        case .idle(let until) where until <= now:
            phase = .connecting(deadline: now + limits.connectDeadline)
            actions.append(.connect(server: pacing.server))
        case .connecting(let deadline) where deadline <= now:
            disconnect(.disconnected(.deadline), at: now, using: &generator)
        case .resting(let until) where until <= now:
            isWoken = true
            look(at: now)
        default: break
        }
        if let deadline = pacing.deadline, deadline <= now {
            disconnect(.disconnected(.deadline), at: now, using: &generator)
        }
        if let deadline = echoDeadline, deadline <= now {
            becomeUnready(.deaf)
            requestEcho(at: now)
        }
        return removeActions()
    }

    /// The time of the next ``tick(at:using:)``; `nil` if only an event can change anything.
    package var nextTick: Int64? {
        let phaseTick: Int64? =
            switch phase {
            case .idle(let until), .resting(let until): until
            case .connecting(let deadline): deadline
            default: nil
            }
        return [phaseTick, pacing.deadline, echoDeadline].compactMap { $0 }.min()
    }

    private mutating func removeActions() -> [Action] {
        defer { actions = [] }
        return actions
    }

    // MARK: Connection

    private mutating func send(_ requests: [ReadRequest], at now: Int64) {
        pacing.didSend(requests.count, at: now)
        actions.append(.send(requests))
    }

    private mutating func receive(
        _ answer: Result<ReadAnswer, PostgresError>, at now: Int64,
        using generator: inout some RandomNumberGenerator
    ) {
        switch (phase, answer) {
        case (.starting, .success(.listening)): break
        case (.starting, .success(.started(let time))):
            startedAt = time
            phase = .unfenced(startedAt: time)
            // A fence before this connection was open proves nothing about what it reads.
            fenced = nil
            actions.append(.requestFence)
        case (.looking(_, let askedAt), .success(.head(let head))):
            phase = .looking(head: head, askedAt: askedAt)
        case (.looking(let head?, let askedAt), .success(.durability(let settings))):
            looked(head, askedAt: askedAt, settings, at: now)
        case (.reading(let bound, let isVerified), .success(.batchesRead)):
            endReading(bound, isVerified: isVerified, at: now)
        case (_, .failure(let error)):
            disconnect(.disconnected(error), at: now, using: &generator)
        case (_, .success):
            disconnect(.disconnected(.unexpectedAnswer), at: now, using: &generator)
        }
    }

    /// Gives the connection up and connects again after a pause.
    private mutating func disconnect(
        _ reason: Unreadiness, at now: Int64, using generator: inout some RandomNumberGenerator
    ) {
        switch phase {
        case .idle, .halted: return
        default: break
        }
        endConnection(reason)
        phase = .idle(until: pacing.nextAttempt(at: now, using: &generator))
    }

    /// Gives the connection up for good: the server has another history than the node.
    private mutating func halt() {
        endConnection(.tailLost)
        phase = .halted
    }

    private mutating func endConnection(_ reason: Unreadiness) {
        pacing.reset()
        (void, echoDeadline) = (0, nil)
        (hasHeard, isWoken, readyAt, startedAt) = (false, false, nil, nil)
        actions.append(.disconnect)
        becomeUnready(reason)
    }

    private mutating func becomeUnready(_ reason: Unreadiness) {
        if isReady || unreadiness != reason { actions.append(.becomeUnready(reason)) }
        (isReady, unreadiness) = (false, reason)
    }

    /// Begins to read once the writer has fenced the server of this connection.
    private mutating func believe(
        at now: Int64, using generator: inout some RandomNumberGenerator
    ) {
        guard let fenced, let startedAt else { return }
        guard fenced.startedAt == startedAt else {
            // The connections of a node lead to one server.
            return disconnect(
                .disconnected(.connectionLost(reason: "another server takes the writes")), at: now,
                using: &generator)
        }
        guard case .unfenced = phase else { return }
        pacing.didSucceed()
        if !hasHeard { requestEcho(at: now) }
        phase = .resting(until: now)
        isWoken = true
        look(at: now)
    }

    /// Stops reading; answers on their way are void.
    private mutating func becomeUnfenced() {
        guard let startedAt else { return }
        switch phase {
        case .resting, .looking, .reading:
            phase = .unfenced(startedAt: startedAt)
            void = pacing.unanswered
            (echoDeadline, readyAt) = (nil, nil)
            becomeUnready(.unfenced)
        default: break
        }
    }

    // MARK: Notifications

    private mutating func requestEcho(at now: Int64) {
        echoDeadline = now + Self.echoDeadline
        actions.append(.requestNotification)
    }

    private mutating func hear() {
        (hasHeard, echoDeadline) = (true, nil)
        becomeReadyIfDue()
    }

    private mutating func becomeReadyIfDue() {
        guard !isReady, hasHeard, let readyAt, let position, position.last >= readyAt else {
            return
        }
        (isReady, unreadiness) = (true, nil)
        actions.append(.becomeReady(position))
    }

    // MARK: Reading

    /// Asks for the newest position, unless a request is in flight.
    private mutating func look(at now: Int64) {
        guard case .resting = phase, isWoken, pacing.unanswered == 0 else { return }
        isWoken = false
        phase = .looking(head: nil, askedAt: max(now, wantedAt))
        send([.readHead, .readDurability], at: now)
    }

    private mutating func rest(at now: Int64) {
        phase = .resting(until: now + Self.lookInterval)
        look(at: now)
    }

    private mutating func looked(
        _ head: LogPosition, askedAt: Int64, _ settings: Durability, at now: Int64
    ) {
        if let objection = settings.objection(to: requirement) {
            becomeUnready(.notDurable(objection))
            return rest(at: now)
        }
        if readyAt == nil { readyAt = head.last }
        actions.append(.observeHead(head, askedAt: askedAt))
        guard let position else {
            return readBatches(from: 0, bound: head, isVerified: true, at: now)
        }
        if head == position {
            becomeReadyIfDue()
            rest(at: now)
        } else if head.last > position.last {
            readBatches(from: position.last, bound: head, isVerified: false, at: now)
        } else {
            halt()
        }
    }

    private mutating func read(_ batch: LogBatch) {
        guard case .reading(let bound, let isVerified) = phase else { return }
        if !isVerified {
            phase = .reading(bound: bound, isVerified: batch.position == position)
            return
        }
        // The first batch of a log that is read from its beginning has none before it.
        let follows = position.map { batch.first == $0.last + 1 } ?? true
        guard follows, batch.position.last >= batch.first, batch.position.last <= bound.last else {
            // A gap is a log that cannot be followed, as if it had another history.
            phase = .reading(bound: bound, isVerified: false)
            return
        }
        hasApplied = true
        position = batch.position
        actions.append(.apply(batch))
    }

    private mutating func endReading(_ bound: LogPosition, isVerified: Bool, at now: Int64) {
        guard let position else { return rest(at: now) }
        guard isVerified, position.last < bound.last || position == bound else {
            return halt()
        }
        becomeReadyIfDue()
        // A batch that is not there yet is asked for again at the next look.
        guard position != bound, hasApplied else { return rest(at: now) }
        readBatches(from: position.last, bound: bound, isVerified: false, at: now)
    }

    private mutating func readBatches(
        from last: Int64, bound: LogPosition, isVerified: Bool, at now: Int64
    ) {
        phase = .reading(bound: bound, isVerified: isVerified)
        hasApplied = false
        send([.readBatches(from: last, through: bound.last)], at: now)
    }
}
