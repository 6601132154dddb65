import CLinux
import Foundation
import GatewayStorage
import Glibc
import Logging
import Synchronization

/// A node of a cluster: repeats in its store what the leader's store does, or leads itself.
///
/// One thread follows and renews the lease; the store's writer appends. Each has its own
/// connection, and blocks.
package final class ClusterNode: StoreReplication {
    package struct Configuration: Sendable {
        let address: PostgresAddress
        let seal: Seal
        /// The name of the node, which no other node of the cluster has: the host and port at which
        /// they reach it.
        package let name: String
        /// Whether a commit must be on a standby, too.
        let waitsForStandby: Bool
        let start = UInt128.random(in: .min ... .max)
    }

    /// The reason why a node cannot go on.
    package enum Fault: Error, Equatable, Sendable, CustomStringConvertible {
        /// The store has to begin anew from the database.
        case mustBeginAnew(reason: String)
        /// No answer in time.
        case noAnswer
        /// The setting that makes commits wait for a standby is empty.
        case noQuorum
        /// The database is of another cluster than the store.
        case otherCluster
        /// The store has a log of its own.
        case hasOwnLog
        /// Another process has the node's name, and began later.
        case nameTaken

        package var description: String {
            switch self {
            case .mustBeginAnew(let reason): "this node must begin anew: \(reason)"
            case .noAnswer: "the database did not answer in time"
            case .noQuorum:
                "cluster.durability is quorum, and synchronous_standby_names is empty: commits do not"
                    + " wait for a standby"
            case .otherCluster: "the data directory belongs to another cluster"
            case .nameTaken:
                "another process has this node's name: each node needs a cluster.node of its own"
            case .hasOwnLog:
                "the data directory has a log of its own: move it to the cluster, or give another"
                    + " directory"
            }
        }
    }

    /// The calls to the gateway. The lease is renewed only between them, so each must return soon.
    package struct Hooks: Sendable {
        /// Repeats batches in the store; see ``StoreTransaction/repeatOperations(_:to:from:)``.
        let repeatBatch:
            @Sendable (_ operations: [StoreOperation], _ to: Data, _ from: Data) async throws ->
                Bool
        /// The node leads from now on.
        ///
        /// - Parameters:
        ///   - isVoid: Whether the log lost a tail, so that all cursors are void.
        ///   - others: The other nodes that lived a moment ago.
        let lead: @Sendable (_ isVoid: Bool, _ others: [String]) async throws -> Void
        /// The node follows from now on.
        let follow: @Sendable () async -> Void

        package init(
            repeatBatch:
                @escaping @Sendable ([StoreOperation], Data, Data) async throws -> Bool,
            lead: @escaping @Sendable (_ isVoid: Bool, _ others: [String]) async throws -> Void,
            follow: @escaping @Sendable () async -> Void
        ) {
            (self.repeatBatch, self.lead, self.follow) = (repeatBatch, lead, follow)
        }
    }

    private struct Leading {
        let connection: ClusterConnection
        let generation: Int64
        /// Whether its epoch is opened; before that, only the epoch is written.
        var isOpen = false
    }

    private struct Waiter {
        let deadline: Int64
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var position: ClusterPosition
        /// `nil` until it is open; it owns this node.
        weak var store: SQLiteStore?
        var leading: Leading?
        /// The time until which this node may write.
        var leadsUntil = Int64.min
        /// Whether the leader must take over from itself.
        var mustRetake = false
        var waiters: [Waiter] = []
        var outage = Outage()
        /// The lease as it was last seen, and when that look began.
        var lease: (view: Lease.View, at: Int64)?
        var isStopping = false
        /// Whether it leaves the lease to other nodes.
        var isResigning = false
        /// Whether a client has more of the log than the database.
        var mustReportLoss = false
    }

    /// The longest wait for a barrier, in milliseconds.
    private static let barrierMax: Int64 = 4_000

    let configuration: Configuration
    package let secrets: StoreSecrets
    private let logger: Logger
    private let state: Mutex<State>
    /// Readable while the loop should look at once.
    private let wakeUp: Int32

    init(
        _ configuration: Configuration, secrets: StoreSecrets, position: ClusterPosition,
        logger: Logger
    ) {
        self.configuration = configuration
        self.secrets = secrets
        self.logger = logger
        state = Mutex(State(position: position))
        // Without a descriptor the loop looks at its interval.
        wakeUp = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
    }

    deinit { if wakeUp >= 0 { close(wakeUp) } }

    /// Goes on where a store ends, whose replication this is.
    func begin(at position: ClusterPosition, in store: SQLiteStore) {
        state.withLock { ($0.position, $0.store) = (position, store) }
    }

    // MARK: The store's writer

    package var refusal: StoreError? {
        state.withLock {
            $0.leading != nil && ClusterConnection.now < $0.leadsUntil ? nil : .notLeading
        }
    }

    package func append(
        _ operations: [StoreOperation], head: UInt64
    ) throws(StoreError) -> Data {
        let (leading, previous) = state.withLock { ($0.leading, $0.position) }
        guard let leading else { throw .notLeading }
        let position = previous.next()
        do {
            let hasQuorum = try ClusterDatabase.append(
                operations, head: head, from: previous, to: position,
                generation: leading.generation, leading.connection, configuration.seal)
            guard hasQuorum || !configuration.waitsForStandby else { throw Fault.noQuorum }
        } catch {
            abandon("\(error)")
            if let error = error as? PostgresError, error.wroteNothing { throw .notLeading }
            throw .unconfirmed(reason: "\(error)")
        }
        state.withLock { $0.position = position }
        return position.data
    }

    package func diverged() { abandon("the store did not commit what the log has") }

    private func abandon(_ reason: String) {
        logger.warning("this node takes over from itself", metadata: ["reason": "\(reason)"])
        state.withLock { state in
            state.leading = nil
            state.mustRetake = true
        }
        wake()
    }

    // MARK: Any thread

    package var name: String { configuration.name }

    /// The id of this start, as text.
    package var start: String { String(configuration.start, radix: 16) }

    /// Whether this node leads, and may write now.
    package var isLeading: Bool {
        state.withLock { $0.leading?.isOpen == true && ClusterConnection.now < $0.leadsUntil }
    }

    /// The reason why the node has neither followed nor written the log for some seconds; `nil` if
    /// it does one of them.
    package var objection: String? {
        state.withLock { $0.outage.objection(at: ClusterConnection.now) }
    }

    package var position: ClusterPosition { state.withLock { $0.position } }

    /// The leader and its generation, as far as this node knows; `nil` if there is none. Without
    /// the database, a leader seen before counts only as long as its lease.
    package var leader: (name: String, generation: Int64)? {
        state.withLock { state in
            guard let (view, at) = state.lease, view.left > ClusterConnection.now - at,
                let name = view.node
            else { return nil }
            return (name, view.generation)
        }
    }

    /// Waits until this node has repeated everything that any node had answered for when it was
    /// called.
    ///
    /// - Throws: ``Fault/noAnswer``.
    package func barrier() async throws {
        if isLeading { return }
        try await withCheckedThrowingContinuation { continuation in
            let waiter = Waiter(
                deadline: ClusterConnection.now + Self.barrierMax, continuation: continuation)
            let isStopping = state.withLock { state in
                if !state.isStopping { state.waiters.append(waiter) }
                return state.isStopping
            }
            if isStopping { continuation.resume(throwing: Fault.noAnswer) } else { wake() }
        }
    }

    /// Has the leader make all cursors void: a client has more of the log than the database.
    package func reportLoss() {
        state.withLock { $0.mustReportLoss = true }
        wake()
    }

    /// Lets another node lead, and goes on to follow.
    package func resign() {
        state.withLock { $0.isResigning = true }
        wake()
    }

    private func wake() { eventfd_write(wakeUp, 1) }

    // MARK: The loop

    /// Follows, or leads when no node does, until the task is cancelled; then releases the lead.
    ///
    /// - Throws: ``Fault/mustBeginAnew(reason:)``, ``Fault/otherCluster`` and ``Fault/nameTaken``.
    package func run(_ hooks: Hooks) async throws {
        let thread = QueueExecutor(label: "cluster")
        try await withTaskCancellationHandler {
            try await withTaskExecutorPreference(thread) { try await follow(hooks) }
        } onCancel: {
            state.withLock { $0.isStopping = true }
            wake()
        }
    }

    private var isStopping: Bool { state.withLock { $0.isStopping } }

    private func follow(_ hooks: Hooks) async throws {
        defer { expel(all: true) }
        var lease = Lease(node: configuration.name)
        var (failures, attempt) = (0, 0)
        while !isStopping {
            do {
                let connection = try ClusterConnection(configuration.address.servers(at: attempt))
                try await follow(connection, &lease, hooks) { failures = 0 }
            } catch let fault as Fault where fault.isFinal {
                await stopLeading(&lease, hooks)
                throw fault
            } catch {
                logger.warning("the cluster's database is away", metadata: ["reason": "\(error)"])
                state.withLock { state in
                    state.outage.failed("\(error)", at: ClusterConnection.now)
                    // Judged by what this server had, which may be another one now.
                    state.mustReportLoss = false
                }
                await stopLeading(&lease, hooks)
                expel(all: false)
                failures = min(failures + 1, 6)
                attempt += 1
                pauseAfterFailure(milliseconds: .random(in: 25..<(50 << failures)))
            }
        }
    }

    /// Writes no more, and follows from where the store is: it may lack what it appended last.
    private func stopLeading(_ lease: inout Lease, _ hooks: Hooks) async {
        lease.abandon()
        let wasLeading = state.withLock { state in
            defer { (state.leading, state.leadsUntil, state.mustRetake) = (nil, .min, false) }
            return state.leadsUntil != .min
        }
        guard wasLeading else { return }
        if let reached = try? storedPosition { state.withLock { $0.position = reached } }
        await hooks.follow()
    }

    /// The ordinal of the newest epoch in the store.
    private var newestEpoch: Int64 {
        get throws { try state.withLock { $0.store }?.newestEpoch() ?? 0 }
    }

    private var storedPosition: ClusterPosition {
        get throws {
            let store = state.withLock { $0.store }
            guard let position = try store?.replicationPosition().flatMap(ClusterPosition.init)
            else { throw Fault.mustBeginAnew(reason: "the store has no position") }
            return position
        }
    }

    /// The shortest wait before another attempt to connect, whoever asks.
    private static let pauseMin: Int64 = 100

    /// Waits before another attempt to connect, until a barrier is requested or its time is over.
    private func pauseAfterFailure(milliseconds: Int64) {
        let now = ClusterConnection.now
        let end = state.withLock { $0.waiters.map(\.deadline).min() } ?? .max
        pause(milliseconds: max(0, min(milliseconds, end - now)))
        let left = now + min(milliseconds, Self.pauseMin) - ClusterConnection.now
        if left > 0, !isStopping { usleep(UInt32(left) * 1_000) }
    }

    /// Waits until somebody wants something, or a time has passed.
    private func pause(milliseconds: Int64) {
        var entry = pollfd(fd: wakeUp, events: Int16(POLLIN), revents: 0)
        _ = poll(&entry, 1, Int32(clamping: milliseconds))
        drainWakeUp()
    }

    private func drainWakeUp() {
        var count: eventfd_t = 0
        eventfd_read(wakeUp, &count)
    }

    /// The interval of looks without a notification, in milliseconds.
    private static let lookInterval: Int64 = 100
    /// The shortest intervals, with a waiting barrier and without: a look costs as a change does.
    private static let (barrierSpacing, lookSpacing): (Int64, Int64) = (2, 20)
    /// The operations that are repeated in one transaction; one batch always is.
    private static let operationsAtOnce = 1_000

    private func follow(
        _ connection: ClusterConnection, _ lease: inout Lease, _ hooks: Hooks,
        onLook: () -> Void
    ) async throws {
        try connection.rows("LISTEN timeline")
        // The node commits before it trusts what it reads: a server that crashed and came back
        // shows commits that still waited for a standby.
        var committedAt = ClusterConnection.now
        var lookedAt: Int64 = 0
        _ = try present(nil, connection)
        while !isStopping {
            if state.withLock({ $0.mustRetake }) { await stopLeading(&lease, hooks) }
            if state.withLock({ $0.isResigning }) {
                try await leave(until: .max, &lease, hooks, connection)
            }
            // The database answers, and this node may still be far behind.
            expel(all: false)
            // A barrier wakes it.
            let spacing =
                state.withLock { $0.waiters.isEmpty } ? Self.lookSpacing : Self.barrierSpacing
            let left = lookedAt + spacing - ClusterConnection.now
            if left > 0 { pause(milliseconds: left) }
            if ClusterConnection.now < lookedAt + Self.barrierSpacing { usleep(2_000) }
            let waiting = state.withLock { state in
                defer { state.waiters = [] }
                return state.waiters
            }
            var isAnswered = false
            defer {
                if !isAnswered { state.withLock { $0.waiters += waiting } }
            }
            let began = ClusterConnection.now
            lookedAt = began
            let at = position
            let (view, batches) = try ClusterDatabase.look(connection, from: at)
            state.withLock { $0.lease = (view.lease, began) }
            guard began < committedAt + Lease.ownDuration else { throw Fault.noAnswer }
            guard view.hasQuorum || !configuration.waitsForStandby else { throw Fault.noQuorum }
            if !isLeading, position == at {
                try check(view, at, connection)
                try await repeatBatches(batches[...], from: at, hooks)
            }
            let isNewest = isLeading || position.number >= view.newest.number
            if isNewest {
                isAnswered = true
                for waiter in waiting { waiter.continuation.resume() }
            }
            state.withLock { $0.outage.ended() }
            onLook()
            if state.withLock({ $0.mustReportLoss }) {
                try ClusterDatabase.reportLoss(of: view.newest, epoch: try newestEpoch, connection)
                state.withLock { $0.mustReportLoss = false }
            }
            if isLeading, view.isShortened {
                abandon("a node had more of the log than the database, or an operator says so")
                continue
            }
            switch lease.look(view.lease, isNewest: isNewest, now: began) {
            case .nothing: break
            case .take(let generation):
                let began = ClusterConnection.now
                if let taken = try ClusterDatabase.take(
                    configuration.name, from: generation, connection)
                {
                    logger.notice("this node takes the lead", metadata: ["generation": "\(taken)"])
                    lease.took(taken, at: began)
                    committedAt = began
                }
                continue
            case .lead(let generation):
                // The writer's own, to the server on which the lease is.
                let appending = try ClusterConnection([connection.server])
                state.withLock { state in
                    state.leading = Leading(connection: appending, generation: generation)
                    state.leadsUntil = lease.leadsUntil ?? .min
                }
                let others = try ClusterDatabase.others(than: configuration.name, connection)
                do {
                    try await hooks.lead(view.isShortened, others)
                } catch {
                    let now = ClusterConnection.now
                    // Else it is not this node that cannot.
                    guard state.withLock({ $0.leading != nil && now < $0.leadsUntil }) else {
                        throw error
                    }
                    logger.error("this node cannot lead", metadata: ["reason": "\(error)"])
                    let absence = others.isEmpty ? Lease.renewalInterval : Lease.absence
                    try await leave(until: now + absence, &lease, hooks, connection)
                    continue
                }
                state.withLock { $0.leading?.isOpen = true }
                if view.isShortened {
                    try ClusterDatabase.forgetLoss(at: try newestEpoch, connection)
                }
                continue
            case .follow:
                await stopLeading(&lease, hooks)
                continue
            }
            if ClusterConnection.now >= committedAt + Lease.renewalInterval {
                let began = ClusterConnection.now
                let isRenewed = try present(lease.generation, connection)
                committedAt = began
                if isRenewed {
                    lease.renewed(at: began)
                    let until = lease.leadsUntil
                    state.withLock { if $0.leading != nil { $0.leadsUntil = until ?? .min } }
                }
            }
            guard isNewest, state.withLock({ $0.waiters.isEmpty }) else { continue }
            // The leader would be notified of its own appends only.
            let leads = isLeading
            if leads { pause(milliseconds: Self.lookInterval) }
            try connection.awaitNotification(or: wakeUp, within: leads ? 0 : Self.lookInterval)
            drainWakeUp()
        }
        try await leave(until: .max, &lease, hooks, connection)
    }

    /// Leads no more, and lets other nodes take the lease.
    private func leave(
        until end: Int64, _ lease: inout Lease, _ hooks: Hooks, _ connection: ClusterConnection
    ) async throws {
        let generation = lease.generation
        await stopLeading(&lease, hooks)
        lease.leave(until: end)
        if let generation { try ClusterDatabase.release(generation, connection) }
    }

    /// Records that the node lives, and renews its lease; returns whether it was renewed.
    private func present(_ generation: Int64?, _ connection: ClusterConnection) throws -> Bool {
        let (isRenewed, start) = try ClusterDatabase.present(
            configuration, at: position, generation: generation, connection)
        // At its own start it has written it before. An operator may have the node forgotten.
        guard start == nil || start == configuration.start else { throw Fault.nameTaken }
        return isRenewed
    }

    /// Checks that the database has what the store has.
    private func check(
        _ view: ClusterDatabase.View, _ position: ClusterPosition, _ connection: ClusterConnection
    ) throws {
        guard view.newest.log == position.log else { throw Fault.otherCluster }
        guard view.ownID != position.id else { return }
        guard view.hasLost(position) else { throw Self.isTooFarBehind }
        logger.critical(
            "the database lost the end of the log",
            metadata: ["batch": "\(position.number)", "newest": "\(view.newest.number)"])
        try ClusterDatabase.reportLoss(of: position, epoch: try newestEpoch, connection)
        throw Fault.mustBeginAnew(reason: "the database lost the end of the log")
    }

    private func repeatBatches(
        _ batches: ArraySlice<ClusterDatabase.Batch>, from start: ClusterPosition, _ hooks: Hooks
    ) async throws {
        var (rest, previous) = (batches, start)
        while !rest.isEmpty {
            var next = previous
            var operations: [StoreOperation] = []
            while let batch = rest.first,
                next == previous || operations.count < Self.operationsAtOnce
            {
                // The one between is gone: not every batch is kept as long as the log.
                guard batch.position.number == next.number + 1 else { throw Self.isTooFarBehind }
                operations += try StoreOperation.list(
                    try configuration.seal.open(
                        batch.body, for: ClusterDatabase.place(of: batch.position)))
                next = batch.position
                rest.removeFirst()
            }
            let isDone = try await hooks.repeatBatch(operations, next.data, previous.data)
            // Else it has what this node appended itself.
            let reached = isDone ? next : try storedPosition
            guard reached.number > previous.number else {
                throw Fault.mustBeginAnew(reason: "the store does not repeat the log")
            }
            state.withLock { state in
                if state.position.number < reached.number { state.position = reached }
            }
            guard isDone else { return }
            previous = next
        }
    }

    private static let isTooFarBehind = Fault.mustBeginAnew(
        reason: "the database no longer has all that follows")

    /// Ends the waits that have lasted too long, or all.
    private func expel(all: Bool) {
        let now = ClusterConnection.now
        let late = state.withLock { state in
            let late = state.waiters.filter { all || $0.deadline <= now }
            state.waiters.removeAll { all || $0.deadline <= now }
            return late
        }
        for waiter in late { waiter.continuation.resume(throwing: Fault.noAnswer) }
    }
}

extension ClusterNode.Fault {
    /// Whether connecting again cannot help.
    fileprivate var isFinal: Bool {
        switch self {
        case .mustBeginAnew, .otherCluster, .hasOwnLog, .nameTaken: true
        case .noAnswer, .noQuorum: false
        }
    }
}

/// A thread for a task that blocks.
private final class QueueExecutor: TaskExecutor {
    private let queue: DispatchQueue

    init(label: String) { queue = DispatchQueue(label: label) }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
