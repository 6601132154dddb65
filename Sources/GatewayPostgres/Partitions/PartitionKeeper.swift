import DequeModule

/// Decides which partitions and leases a node owns, and writes its push state.
///
/// The lease is the node's, and renewed synchronously: that commit lies behind all that was visible,
/// so what is read afterwards is durable. A node may push for seven seconds from the begin of its
/// last renewal; others take its partitions ten seconds after it, and only when they themselves saw
/// no renewal for seven. A partition changes hands by its owner's last flush and release, or when
/// the owner is dead; each taking raises its generation, and what an earlier owner still writes is
/// refused.
///
/// Nothing is written on a connection before the node's own position was found on it with its chain
/// and the node's writer leads to the same server.
///
/// A value without I/O, clock or lock, like ``BatchWriter``. The time is that of `CLOCK_BOOTTIME`: a
/// process or machine that was stopped sees that it was.
package struct PartitionKeeper: Sendable {
    package enum Event: Sendable {
        /// The connection that was asked for is open.
        case connected
        /// The connection ended or could not be opened.
        case disconnected(PostgresError)
        /// The first unanswered request ended.
        case answered(Result<PartitionAnswer, PostgresError>)
    }

    /// An action for the shell, to be done in order.
    package enum Action: Sendable, Equatable {
        /// Connect to the server with this index, modulo their number.
        case connect(server: Int)
        /// Close the connection; nothing more is expected from it.
        case disconnect
        /// Send requests in one write.
        case send([PartitionRequest])
        /// Push until that time, for the partitions that are loaded.
        case extendLease(until: Int64)
        /// Push nothing until the lease is extended.
        case suspend
        /// Load a partition: its rows follow. A lease has none.
        case acquire(Partition)
        /// Rows of a partition that was acquired.
        case deliver(PartitionPortion)
        /// All rows were delivered: its clients may be pushed to.
        case finishLoading(Partition)
        /// Stop pushing for these partitions, note their last rows, and then settle them.
        case handOver([Partition])
        /// Forget these partitions at once.
        case lose([Partition])
        /// Give the evidence of clients; `nil` if it could not be read.
        case complete(ticket: UInt64, [PartitionedClient: DeliveryEvidence]?)
        /// The node takes part.
        case becomeReady
        /// The node does not take part.
        case becomeUnready(Unreadiness)
        /// The node serves no more and has released everything.
        case finishDraining
    }

    /// The reason why a node does not take part.
    package typealias Unreadiness = BatchWriter.Unreadiness

    /// A question for what clients confirmed.
    struct LookUp: Sendable {
        let ticket: UInt64
        let clients: [PartitionedClient]
    }

    enum Phase: Equatable {
        /// Waits before the next attempt to connect.
        case idle(until: Int64)
        case connecting(deadline: Int64)
        case identifying
        /// Waits for the writer to be ready on the same server.
        case waiting(startedAt: Int64)
        case attaching(startedAt: Int64)
        case running(startedAt: Int64)
        /// Found another history, and does nothing more.
        case halted
    }

    /// The longest time to push after the begin of a renewal, milliseconds.
    package static let pushMilliseconds: Int64 = 7_000
    /// The time between two renewals, milliseconds.
    static let renewalInterval: Int64 = 3_000
    /// The time between two flushes, milliseconds.
    static let flushInterval: Int64 = 250
    /// The time between two attempts to take what is wanted, milliseconds.
    static let takeInterval: Int64 = 1_000
    /// The time between two writes of the sequence that is clear for a partition, milliseconds.
    static let clearInterval: Int64 = 30_000
    /// The time between two looks for such writes, milliseconds.
    static let clearLookInterval: Int64 = 1_000
    /// The pause of a process that another one replaced, milliseconds.
    static let replacedPause: Int64 = 5_000
    /// The maximum number of rows in one request.
    static let rowsMax = 1_000
    /// The maximum number of partitions that are loaded at once.
    static let loadsMax = 4
    /// The maximum number of look-ups that wait.
    static let lookUpsMax = 10_000

    let requirement: Durability.Requirement
    let limits: BatchLimits
    var phase: Phase
    /// The highest position that is known to be durable.
    private(set) var position: LogPosition?
    /// The position whose chain the server was asked for at the last connect; others may follow it
    /// before the answer.
    private(set) var asked: LogPosition?
    var logID: UInt128?
    /// 63 random bits of this process.
    let process: Int64
    /// Whether the next connection replaces another process of the node.
    var isForced = true
    /// The start time of the server on which the writer is ready.
    private var writersServer: Int64?
    /// The requests without an answer, in order.
    var inFlight: Deque<PartitionRequest> = []
    private var requestDeadline: Int64?
    private var attempts = 0
    private var server = 0

    /// Whether the node wants partitions.
    private(set) var serves = false
    private var isDraining = false
    private var isDrained = false
    private var load: String?
    private var renewalBegan: Int64 = .min / 2
    /// The renewal whose settings are not known yet.
    var renewal: LeaseRenewal?
    private var nextRenewal: Int64 = .min / 2
    /// The end of the time for pushes; `nil` while nothing may be pushed.
    private(set) var leaseEnd: Int64?
    private var node: Int32?
    /// The nodes that want partitions and whose lease runs.
    private var serving: [Int32] = []
    /// The numbers that the node is wanted for.
    private var share: PartitionShare
    private var wanted: Set<Int32> { share.numbers }
    /// The wanted numbers that it does not have.
    private var missing: Set<Int32> = []
    private var silence = SilenceRecord()
    private var lastTake: Int64 = .min / 2
    private var lastFlush: Int64 = .min / 2
    private var lastClearLook: Int64 = .min / 2
    /// The next partition whose old evidence is deleted.
    private var nextForgotten: Int32 = 0

    var holdings: [Int32: PartitionHolding] = [:]
    /// The numbers of the holdings that are released once their rows are written.
    private var leaving: Set<Int32> = []
    /// The numbers of the holdings whose clear sequence is not written.
    private var unclear: Set<Int32> = []
    private var loadQueue: Deque<Int32> = []
    var buffer = PushStateBuffer()
    var flushed: [FlushCall.Owned] = []
    var heard = HeardBuffer()
    private var lookUps: Deque<LookUp> = []
    var lookUpsInFlight: [LookUp] = []
    var actions: [Action] = []

    /// Creates a keeper that connects at its first ``tick(at:using:)`` and wants no partitions before
    /// ``serve(at:)``.
    ///
    /// - Parameters:
    ///   - requirement: The condition on which a renewal is taken for durable.
    ///   - position: The position up to which the node knows the log; `nil` if it knows nothing.
    package init(
        _ requirement: Durability.Requirement, position: LogPosition?,
        limits: BatchLimits = BatchLimits(), at now: Int64,
        using generator: inout some RandomNumberGenerator
    ) {
        self.init(
            requirement, position: position, share: PartitionShare(), limits: limits, at: now,
            using: &generator)
    }

    init(
        _ requirement: Durability.Requirement, position: LogPosition?, share: PartitionShare,
        limits: BatchLimits = BatchLimits(), at now: Int64,
        using generator: inout some RandomNumberGenerator
    ) {
        self.requirement = requirement
        self.position = position
        self.share = share
        self.limits = limits
        phase = .idle(until: now)
        process = Int64(bitPattern: generator.next() >> 1)
    }

    // MARK: Events

    /// Handles an event.
    package mutating func receive(
        _ event: Event, at now: Int64, using generator: inout some RandomNumberGenerator
    ) -> [Action] {
        suspendIfDue(at: now)
        switch event {
        case .connected:
            guard case .connecting = phase else { break }
            phase = .identifying
            asked = position
            send([.identify(at: position?.last ?? -1)], at: now)
        case .disconnected(let error): failed(error, at: now, using: &generator)
        case .answered(let answer):
            // Answers after the connection was given up are void.
            guard let request = inFlight.popFirst() else { break }
            requestDeadline = inFlight.isEmpty ? nil : now + limits.deadline
            receive(answer, to: request, at: now, using: &generator)
        }
        return proceed(at: now)
    }

    /// Does what is due; to be called at ``nextTick``.
    package mutating func tick(
        at now: Int64, using generator: inout some RandomNumberGenerator
    ) -> [Action] {
        suspendIfDue(at: now)
        switch phase {
        case .idle(let until) where until <= now:
            phase = .connecting(deadline: now + limits.connectDeadline)
            actions.append(.connect(server: server))
        case .connecting(let deadline) where deadline <= now:
            disconnect(.disconnected(.deadline), at: now, using: &generator)
        default: break
        }
        if let deadline = requestDeadline, deadline <= now {
            disconnect(.disconnected(.deadline), at: now, using: &generator)
        }
        return proceed(at: now)
    }

    /// Wants partitions from here on: the node follows the log.
    package mutating func serve(at now: Int64) -> [Action] {
        guard !isDraining else { return [] }
        serves = true
        renewSoon(at: now)
        return proceed(at: now)
    }

    /// Wants no partitions any more: what the node has is handed over.
    package mutating func drain(at now: Int64) -> [Action] {
        guard !isDraining else { return [] }
        (serves, isDraining) = (false, true)
        renewSoon(at: now)
        updateShare()
        handOverUnwanted()
        return proceed(at: now)
    }

    /// Reports the node's load with the next renewals, as a JSON object.
    package mutating func report(load: String) { self.load = load }

    /// Tells the keeper the server on which the node's writer is ready.
    ///
    /// - Parameter startedAt: The server's start time; `nil` when the writer is not ready.
    package mutating func observeWriter(
        startedAt: Int64?, at now: Int64, using generator: inout some RandomNumberGenerator
    ) -> [Action] {
        writersServer = startedAt
        switch phase {
        case .waiting(let own), .attaching(let own), .running(let own):
            guard let startedAt else { break }
            if startedAt != own {
                // The connections of a node lead to one server.
                disconnect(
                    .disconnected(.connectionLost(reason: "another server takes the writes")),
                    at: now, using: &generator)
            } else if case .waiting = phase {
                attach(startedAt: own, at: now)
            }
        default: break
        }
        return proceed(at: now)
    }

    /// Tells the keeper a position that was read and is durable.
    package mutating func advance(to position: LogPosition) {
        if position.last > self.position?.last ?? -1 { self.position = position }
    }

    /// Writes the push state of clients with the next flush; of no partition that is lost.
    package mutating func note(
        told rows: [PushStateRow], of partition: Partition, at now: Int64
    ) -> [Action] {
        guard let holding = holding(partition),
            holding.stage == .owned || holding.stage == .settling
        else { return [] }
        buffer.note(rows, of: partition.number)
        return proceed(at: now)
    }

    /// Notes that nothing is owed up to a sequence but what rows of clients say, which were noted
    /// before.
    package mutating func note(clear sequence: Int64, of partition: Partition) {
        guard let holding = holding(partition),
            holding.stage == .owned || holding.stage == .settling
        else { return }
        guard sequence > holding.clear else { return }
        holdings[partition.number]?.clear = sequence
        unclear.insert(partition.number)
    }

    /// Writes what clients confirmed at this node with the next flush.
    package mutating func note(heard rows: [HeardRow], at now: Int64) -> [Action] {
        if phase == .halted { return [] }
        heard.note(rows)
        return proceed(at: now)
    }

    /// Hands a partition over whose last rows were noted.
    package mutating func settle(_ partition: Partition, at now: Int64) -> [Action] {
        guard holding(partition)?.stage == .settling else { return [] }
        leave(partition.number)
        return proceed(at: now)
    }

    /// Reads what clients confirmed at any node; the outcome is an action of this or a later call.
    package mutating func lookUp(
        _ clients: [PartitionedClient], ticket: UInt64, at now: Int64
    ) -> [Action] {
        guard case .running = phase, lookUps.count < Self.lookUpsMax,
            clients.count <= Self.rowsMax
        else { return [.complete(ticket: ticket, nil)] }
        lookUps.append(LookUp(ticket: ticket, clients: clients))
        return proceed(at: now)
    }

    /// The time of the next ``tick(at:using:)``; `nil` if only an event can change anything.
    package var nextTick: Int64? {
        var ticks = [requestDeadline, leaseEnd]
        switch phase {
        case .idle(let until): ticks.append(until)
        case .connecting(let deadline): ticks.append(deadline)
        case .running:
            if renewal == nil, !isInFlight(\.isRenewal) { ticks.append(nextRenewal) }
            if leaseEnd != nil, !missing.isEmpty, !isInFlight(\.isTaking) {
                ticks.append(lastTake + Self.takeInterval)
            }
            if flushed.isEmpty && !buffer.isEmpty || heard.sent.isEmpty && !heard.isEmpty {
                ticks.append(lastFlush + Self.flushInterval)
            }
            if flushed.isEmpty, !unclear.isEmpty {
                ticks.append(
                    max(lastFlush + Self.flushInterval, lastClearLook + Self.clearLookInterval))
            }
        default: break
        }
        return ticks.compactMap { $0 }.min()
    }

    // MARK: Connection

    mutating func send(_ requests: [PartitionRequest], at now: Int64) {
        inFlight.append(contentsOf: requests)
        requestDeadline = requestDeadline ?? now + limits.deadline
        actions.append(.send(requests))
    }

    private func isInFlight(_ matches: (PartitionRequest) -> Bool) -> Bool {
        inFlight.contains(where: matches)
    }

    /// The server has the node's history: attaches, once the writer is ready on the same one.
    mutating func identified(
        startedAt: Int64, at now: Int64, using generator: inout some RandomNumberGenerator
    ) {
        phase = .waiting(startedAt: startedAt)
        guard let writersServer else { return }
        guard writersServer == startedAt else {
            return disconnect(
                .disconnected(.connectionLost(reason: "another server takes the writes")), at: now,
                using: &generator)
        }
        attach(startedAt: startedAt, at: now)
    }

    private mutating func attach(startedAt: Int64, at now: Int64) {
        phase = .attaching(startedAt: startedAt)
        renewalBegan = now
        nextRenewal = now + Self.renewalInterval
        send(
            [
                .attach(process: process, isForced: isForced), .renew(serves: serves, load: load),
                .readDurability,
            ], at: now)
    }

    /// Gives the connection up, keeps what is not written, and connects again after a pause.
    mutating func disconnect(
        _ reason: Unreadiness, at now: Int64, using generator: inout some RandomNumberGenerator
    ) {
        switch phase {
        case .idle, .halted: return
        default: break
        }
        inFlight = []
        requestDeadline = nil
        renewal = nil
        buffer.restoreAll()
        flushed = []
        heard.restore()
        actions += (lookUpsInFlight + lookUps).map { .complete(ticket: $0.ticket, nil) }
        (lookUps, lookUpsInFlight) = ([], [])
        loadQueue = []
        for (number, holding) in holdings.sorted(by: { $0.key < $1.key }) {
            switch holding.stage {
            case .queued, .loading: loadQueue.append(number)
            case .releasing: leave(number)
            case .owned, .settling, .leaving: break
            }
        }
        actions += [.disconnect, .becomeUnready(reason)]
        if reason == .tailLost {
            loseAll()
            heard = HeardBuffer()
            phase = .halted
            return
        }
        let bound = min(Int64(2_000), 50 << min(attempts, 6))
        let pause = reason == .disconnected(.fenced) ? Self.replacedPause : 0
        phase = .idle(until: now + pause + Int64.random(in: 0...bound, using: &generator))
        attempts += 1
        server += 1
    }

    // MARK: Lease

    private mutating func renewSoon(at now: Int64) { nextRenewal = min(nextRenewal, now) }

    /// A renewal failed because a lock was not free.
    mutating func renewLater(at now: Int64) { nextRenewal = now + Self.flushInterval }

    /// The renewal that began last is durable.
    mutating func renewed(_ renewal: LeaseRenewal, at now: Int64) {
        if case .attaching(let startedAt) = phase {
            phase = .running(startedAt: startedAt)
            (attempts, isForced) = (0, false)
            actions.append(.becomeReady)
        }
        buffer.endRenewal()
        node = renewal.node
        silence.note(renewal.beats, at: now)
        let isFirst = leaseEnd == nil
        let end = renewalBegan + Self.pushMilliseconds
        if end > now {
            leaseEnd = end
            actions.append(.extendLease(until: end))
        }
        if isFirst { lastTake = .min / 2 }
        serving = renewal.serving
        updateShare()
        compare(renewal.owned)
        handOverUnwanted()
        if isDraining, !isDrained, !serving.contains(renewal.node), holdings.isEmpty {
            isDrained = true
            actions.append(.finishDraining)
        }
        forgetNext(at: now)
    }

    /// Stops pushing when the lease is no longer surely held.
    private mutating func suspendIfDue(at now: Int64) {
        guard let end = leaseEnd, end <= now else { return }
        leaseEnd = nil
        actions.append(.suspend)
    }

    /// Compares what the node has with what it owns on the server.
    private mutating func compare(_ owned: [Partition]) {
        let generations = Dictionary(owned.map { ($0.number, $0.generation) }) { $1 }
        lose(
            holdings.filter { generations[$0.key] != $0.value.generation }.map(\.key).sorted())
        // The outcome of a taking may have been lost with its connection.
        for partition in owned where holdings[partition.number] == nil { acquire(partition) }
    }

    /// Recomputes the node's share.
    private mutating func updateShare() {
        share.update(of: serves ? node : nil, among: serving)
        missing = wanted.filter { holdings[$0] == nil }
    }

    /// Hands over what other nodes are wanted for.
    private mutating func handOverUnwanted() {
        // A node that is not listed yet keeps what it has: its next renewal lists it.
        guard !serves || node.map(serving.contains) == true else { return }
        var settling: [Partition] = []
        var lost: [Partition] = []
        for (number, holding) in holdings.sorted(by: { $0.key < $1.key })
        where !wanted.contains(number) {
            let partition = Partition(number: number, generation: holding.generation)
            switch holding.stage {
            case .owned:
                holdings[number]?.stage = .settling
                settling.append(partition)
            case .queued, .loading:
                leave(number)
                lost.append(partition)
            case .settling, .leaving, .releasing: break
            }
        }
        if !lost.isEmpty { actions.append(.lose(lost)) }
        if !settling.isEmpty { actions.append(.handOver(settling)) }
    }

    /// A partition is released as soon as its rows are written.
    private mutating func leave(_ number: Int32) {
        holdings[number]?.stage = .leaving
        leaving.insert(number)
    }

    /// The node has a partition from here on.
    mutating func acquire(_ partition: Partition) {
        let number = partition.number
        holdings[number] = PartitionHolding(generation: partition.generation, stage: .queued)
        missing.remove(number)
        guard wanted.contains(number) else { return leave(number) }
        actions.append(.acquire(partition))
        loadQueue.append(number)
    }

    /// Removes what is known of a partition.
    private mutating func forget(_ number: Int32) {
        holdings[number] = nil
        buffer.removeAll(of: number)
        leaving.remove(number)
        unclear.remove(number)
        if wanted.contains(number) { missing.insert(number) }
    }

    /// The node has these partitions no more.
    mutating func lose(_ numbers: [Int32]) {
        var lost: [Partition] = []
        for number in numbers {
            guard let holding = holdings[number] else { continue }
            forget(number)
            lost.append(Partition(number: number, generation: holding.generation))
        }
        if !lost.isEmpty { actions.append(.lose(lost)) }
    }

    /// The node has nothing any more, and does not push.
    mutating func loseAll() {
        if leaseEnd != nil { actions.append(.suspend) }
        leaseEnd = nil
        lose(holdings.keys.sorted())
    }

    /// The release of these partitions has ended.
    mutating func released(_ partitions: [Partition]) {
        for partition in partitions where holding(partition)?.stage == .releasing {
            forget(partition.number)
        }
        // The renewal shows that nothing is left.
        if isDraining, holdings.isEmpty { nextRenewal = .min / 2 }
    }

    /// The release of these partitions wrote nothing.
    mutating func releaseLater(_ partitions: [Partition]) {
        for partition in partitions where holding(partition)?.stage == .releasing {
            leave(partition.number)
        }
    }

    /// Returns what the node knows of a partition of this generation.
    func holding(_ partition: Partition) -> PartitionHolding? {
        guard let holding = holdings[partition.number],
            holding.generation == partition.generation
        else { return nil }
        return holding
    }

    // MARK: Requests

    /// Returns the actions so far, with the requests that are due.
    private mutating func proceed(at now: Int64) -> [Action] {
        if case .running = phase { request(at: now) }
        defer { actions = [] }
        return actions
    }

    private mutating func request(at now: Int64) {
        var requests: [PartitionRequest] = []
        if nextRenewal <= now, renewal == nil, !isInFlight(\.isRenewal) {
            renewalBegan = now
            nextRenewal = now + Self.renewalInterval
            buffer.beginRenewal()
            requests += [.renew(serves: serves, load: load), .readDurability]
        }
        // Nothing else without a lease that surely runs.
        if leaseEnd != nil {
            requestTake(&requests, at: now)
            requestLoads(&requests)
            requestRelease(&requests)
        }
        requestFlush(&requests, at: now)
        if !lookUps.isEmpty, lookUpsInFlight.isEmpty {
            var clients: [PartitionedClient] = []
            while let next = lookUps.first, clients.count + next.clients.count <= Self.rowsMax {
                lookUps.removeFirst()
                lookUpsInFlight.append(next)
                clients += next.clients
            }
            requests.append(.lookUp(Array(Set(clients))))
        }
        if !requests.isEmpty { send(requests, at: now) }
    }

    private mutating func requestTake(_ requests: inout [PartitionRequest], at now: Int64) {
        guard lastTake + Self.takeInterval <= now, !missing.isEmpty, !isInFlight(\.isTaking)
        else { return }
        lastTake = now
        let silent = silence.nodes(silentFor: Self.pushMilliseconds, at: now)
        requests.append(.take(missing.sorted(), silent: silent))
    }

    private mutating func requestLoads(_ requests: inout [PartitionRequest]) {
        var count = Set(inFlight.compactMap(\.loadedPartition)).count
        while count < Self.loadsMax, let number = loadQueue.popFirst() {
            guard let holding = holdings[number] else { continue }
            let partition = Partition(number: number, generation: holding.generation)
            let progress: PartitionHolding.LoadProgress
            switch holding.stage {
            case .queued: progress = PartitionHolding.LoadProgress()
            case .loading(let before): progress = before
            default: continue
            }
            if partition.lease != nil {
                holdings[number]?.stage = .owned
                actions.append(.finishLoading(partition))
                continue
            }
            holdings[number]?.stage = .loading(progress)
            if case .next(let name) = progress.registrations {
                requests.append(.loadRegistrations(partition, after: name))
            }
            if case .next(let name) = progress.states {
                requests.append(.loadStates(partition, after: name))
            }
            count += 1
        }
    }

    /// Loads the rest of a partition, behind the others that wait.
    mutating func loadFurther(_ number: Int32) { loadQueue.append(number) }

    private mutating func requestRelease(_ requests: inout [PartitionRequest]) {
        // One at a time: each is a synchronous commit, and a hand-over settles many one by one.
        guard !leaving.isEmpty, !isInFlight(\.isRelease) else { return }
        let ready = leaving.filter { !buffer.hasRows(of: $0) && !unclear.contains($0) }.sorted()
        guard !ready.isEmpty else { return }
        var partitions: [Partition] = []
        for number in ready {
            guard let holding = holdings[number] else { continue }
            partitions.append(Partition(number: number, generation: holding.generation))
            holdings[number]?.stage = .releasing
            leaving.remove(number)
        }
        requests.append(.release(partitions))
    }

    private mutating func requestFlush(_ requests: inout [PartitionRequest], at now: Int64) {
        guard lastFlush + Self.flushInterval <= now || !leaving.isEmpty else { return }
        if flushed.isEmpty, let call = nextFlush(at: now) {
            // The rows that do not fit go as soon as this has ended.
            lastFlush = call.rows.count < Self.rowsMax ? now : .min / 2
            requests.append(.flush(call))
        }
        if heard.sent.isEmpty, !heard.isEmpty {
            let rows = heard.nextPortion(countMax: Self.rowsMax)
            lastFlush = rows.count < Self.rowsMax ? max(now, lastFlush) : .min / 2
            requests.append(.hear(rows))
        }
    }

    /// Returns the next portion of what is to be written; `nil` if there is nothing.
    private mutating func nextFlush(at now: Int64) -> FlushCall? {
        let portion = buffer.nextPortion(countMax: Self.rowsMax)
        var owned: [Int32: FlushCall.Owned] = [:]
        for (number, _) in portion {
            guard owned[number] == nil, let holding = holdings[number] else { continue }
            owned[number] = FlushCall.Owned(
                partition: Partition(number: number, generation: holding.generation), clear: nil)
        }
        if !portion.isEmpty || !leaving.isEmpty || lastClearLook + Self.clearLookInterval <= now {
            lastClearLook = now
            addClears(to: &owned, at: now)
        }
        guard !owned.isEmpty else { return nil }
        flushed = owned.values.sorted { $0.partition.number < $1.partition.number }
        return FlushCall(
            owned: flushed, rows: portion.map { FlushCall.Row(part: $0.part, state: $0.row) })
    }

    /// Adds the clear sequences that are due.
    private mutating func addClears(
        to owned: inout [Int32: FlushCall.Owned], at now: Int64
    ) {
        // A clear sequence stands on rows that are written before or with it.
        for number in unclear where !buffer.hasWaitingRows(of: number) {
            guard let holding = holdings[number],
                holding.clearDue <= now || holding.stage == .leaving
            else { continue }
            owned[number] = FlushCall.Owned(
                partition: Partition(number: number, generation: holding.generation),
                clear: holding.clear)
            holdings[number]?.clearDue = now + Self.clearInterval
        }
    }

    /// The rows of a flush were written, but those of lost partitions.
    mutating func confirmFlush() {
        buffer.confirm()
        for owned in flushed {
            guard let clear = owned.clear, let holding = holding(owned.partition) else { continue }
            holdings[owned.partition.number]?.writtenClear = clear
            if clear == holding.clear { unclear.remove(owned.partition.number) }
        }
        flushed = []
    }

    /// The rows of a flush may not have been written.
    mutating func restoreFlush() {
        buffer.restore()
        flushed = []
    }

    /// Deletes the old evidence of one partition after the other.
    private mutating func forgetNext(at now: Int64) {
        let next = holdings.keys.filter { $0 >= nextForgotten && $0 < Partition.count }.min() ?? 0
        nextForgotten = next + 1
        if holdings[next]?.stage == .owned { send([.forgetHeard([next])], at: now) }
    }
}
