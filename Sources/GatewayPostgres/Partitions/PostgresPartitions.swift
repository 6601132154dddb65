import Synchronization

/// The partitions and leases of a node: a ``PartitionKeeper`` with its connection.
package final class PostgresPartitions: Sendable {
    /// Something that the owner of the push state has to do or to know, reported on the thread of
    /// the loop, which it must not hold up.
    package enum Report: Sendable, Equatable {
        /// The node takes part.
        case ready
        /// The node does not take part; it may push for as long as ``PostgresPartitions/mayPush``.
        case unready(PartitionKeeper.Unreadiness)
        /// A partition or lease is the node's: its rows follow.
        case acquired(Partition)
        /// Rows of a partition.
        case portion(PartitionPortion)
        /// All rows of a partition were reported; a lease has none.
        case loaded(Partition)
        /// Stop pushing for these partitions or doing the task of these leases, note the last
        /// rows, and call ``PostgresPartitions/settle(_:)`` for each.
        case handOver([Partition])
        /// These partitions are another node's: forget them at once.
        case lost([Partition])
        /// The node wants no more partitions and has none.
        case drained
    }

    /// The evidence of clients that were asked for; `nil` if it could not be read.
    package typealias Evidence = [PartitionedClient: DeliveryEvidence]?

    /// A command for the thread of the loop.
    fileprivate enum Command: Sendable {
        case serve
        case drain
        case load(String)
        case observe(startedAt: Int64?)
        case advance(LogPosition)
        case noteTold([PushStateRow], Partition)
        case noteClear(Int64, Partition)
        case noteHeard([HeardRow])
        case settle(Partition)
        case lookUp([PartitionedClient], @Sendable (Evidence) -> Void)
    }

    private let inbox: CommandInbox<Command>
    private let permission = PushPermission()

    /// Adds the partitions of a node to a loop.
    ///
    /// - Parameters:
    ///   - address: The servers, with the login of the node.
    ///   - requirement: The condition on which a renewal is taken for durable.
    ///   - position: The position up to which the node knows the log; `nil` if it knows nothing.
    ///   - report: Called on the thread of the loop.
    package init(
        _ address: PostgresAddress, _ requirement: Durability.Requirement,
        from position: LogPosition?, limits: BatchLimits = BatchLimits(), on loop: PostgresLoop,
        report: @escaping @Sendable (Report) -> Void
    ) {
        let inbox = CommandInbox<Command>(loop)
        let permission = permission
        self.inbox = inbox
        loop.add {
            var generator = SystemRandomNumberGenerator()
            return PartitionMember(
                address, inbox,
                keeper: PartitionKeeper(
                    requirement, position: position, limits: limits, at: PostgresLoop.now,
                    using: &generator),
                permission: permission, report: report)
        }
    }

    /// Whether the node's lease surely runs. To be asked before each push, on any thread: a process
    /// that was stopped finds out here, before its loop does.
    package var mayPush: Bool { PostgresLoop.now < permission.end.load(ordering: .acquiring) }

    /// Wants partitions from here on: the node follows the log.
    package func serve() { inbox.append(.serve) }

    /// Hands all partitions over; ends with ``Report/drained``.
    package func drain() { inbox.append(.drain) }

    /// Reports the node's load with its renewals, as a JSON object.
    package func report(load: String) { inbox.append(.load(load)) }

    /// Tells the status of the node's writer: all connections of a node lead to one server.
    package func observe(_ status: PostgresWriter.Status) {
        switch status {
        case .ready(let identity): inbox.append(.observe(startedAt: identity.startedAt))
        case .unready: inbox.append(.observe(startedAt: nil))
        }
    }

    /// Tells a position that was read and is durable.
    package func advance(to position: LogPosition) { inbox.append(.advance(position)) }

    /// Writes the push state of clients with the next flush.
    package func note(told rows: [PushStateRow], of partition: Partition) {
        inbox.append(.noteTold(rows, partition))
    }

    /// Notes that nothing is owed up to a sequence but what rows of clients say, which were noted
    /// before.
    package func note(clear sequence: Int64, of partition: Partition) {
        inbox.append(.noteClear(sequence, partition))
    }

    /// Writes what clients confirmed at this node with the next flush.
    package func note(heard rows: [HeardRow]) { inbox.append(.noteHeard(rows)) }

    /// Hands a partition over whose last rows were noted.
    package func settle(_ partition: Partition) { inbox.append(.settle(partition)) }

    /// Reads what clients confirmed at any node, at most 1,000 at once.
    ///
    /// - Parameter complete: Called once, on the thread of the loop.
    package func lookUp(
        _ clients: [PartitionedClient], complete: @escaping @Sendable (Evidence) -> Void
    ) {
        inbox.append(.lookUp(clients, complete))
    }
}

/// The end of the time in which a node may push.
private final class PushPermission: Sendable {
    let end = Atomic<Int64>(.min)
}

/// Acts for a ``PartitionKeeper`` on the thread of the loop.
private final class PartitionMember: PostgresLoop.Member {
    private let inbox: CommandInbox<PostgresPartitions.Command>
    private let permission: PushPermission
    private let report: @Sendable (PostgresPartitions.Report) -> Void
    private var keeper: PartitionKeeper
    private let session: RequestSession<PartitionRequest>
    private var completions: [UInt64: @Sendable (PostgresPartitions.Evidence) -> Void] = [:]
    private var nextTicket: UInt64 = 0
    private var generator = SystemRandomNumberGenerator()

    init(
        _ address: PostgresAddress, _ inbox: CommandInbox<PostgresPartitions.Command>,
        keeper: PartitionKeeper, permission: PushPermission,
        report: @escaping @Sendable (PostgresPartitions.Report) -> Void
    ) {
        session = RequestSession(address)
        self.inbox = inbox
        self.keeper = keeper
        self.permission = permission
        self.report = report
    }

    deinit {
        permission.end.store(.min, ordering: .releasing)
        for command in inbox.removeAll() {
            if case .lookUp(_, let complete) = command { complete(nil) }
        }
        for complete in completions.values { complete(nil) }
    }

    var interest: (descriptor: Int32, events: Int16)? { session.interest }

    var nextTurn: Int64? { session.nextTurn(or: keeper.nextTick) }

    func turn(at now: Int64) {
        for command in inbox.removeAll() { run(command, at: now) }
        session.proceed { receive($0, at: now) }
        if let tick = keeper.nextTick, tick <= now {
            perform(keeper.tick(at: now, using: &generator))
        }
    }

    private func run(_ command: PostgresPartitions.Command, at now: Int64) {
        switch command {
        case .serve: perform(keeper.serve(at: now))
        case .drain: perform(keeper.drain(at: now))
        case .load(let load): keeper.report(load: load)
        case .observe(let startedAt):
            perform(keeper.observeWriter(startedAt: startedAt, at: now, using: &generator))
        case .advance(let position): keeper.advance(to: position)
        case .noteTold(let rows, let partition):
            perform(keeper.note(told: rows, of: partition, at: now))
        case .noteClear(let sequence, let partition): keeper.note(clear: sequence, of: partition)
        case .noteHeard(let rows): perform(keeper.note(heard: rows, at: now))
        case .settle(let partition): perform(keeper.settle(partition, at: now))
        case .lookUp(let clients, let complete):
            nextTicket += 1
            completions[nextTicket] = complete
            perform(keeper.lookUp(clients, ticket: nextTicket, at: now))
        }
    }

    private func receive(_ event: RequestSession<PartitionRequest>.Event, at now: Int64) {
        let input: PartitionKeeper.Event
        switch event {
        case .connected: input = .connected
        case .disconnected(let error): input = .disconnected(error)
        case .answered(let answer): input = .answered(answer)
        case .row, .notified: return
        }
        perform(keeper.receive(input, at: now, using: &generator))
    }

    private func perform(_ actions: [PartitionKeeper.Action]) {
        for action in actions {
            switch action {
            case .connect(let server): session.connect(to: server)
            case .disconnect: session.disconnect()
            case .send(let requests): session.send(requests)
            case .extendLease(let end): permission.end.store(end, ordering: .releasing)
            case .suspend: permission.end.store(.min, ordering: .releasing)
            case .acquire(let partition): report(.acquired(partition))
            case .deliver(let portion): report(.portion(portion))
            case .finishLoading(let partition): report(.loaded(partition))
            case .handOver(let partitions): report(.handOver(partitions))
            case .lose(let partitions): report(.lost(partitions))
            case .complete(let ticket, let evidence):
                completions.removeValue(forKey: ticket)?(evidence)
            case .becomeReady: report(.ready)
            case .becomeUnready(let reason): report(.unready(reason))
            case .finishDraining: report(.drained)
            }
        }
    }
}
