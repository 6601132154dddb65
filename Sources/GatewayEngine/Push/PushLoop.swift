import CLinux
import DequeModule
import Foundation
import GatewayCore
import GatewayStorage
import Logging
import NIOCore
import Synchronization
import WidgetModel

/// The thin shell around the core's ``GatewayCore/PushScheduler``: passes in events and the time,
/// sends pushes, and persists the state that must survive the program.
// Sound: everything except `inbox` and the constants is touched on `loop` only, which each entry
// point hops to.
package final class PushLoop: @unchecked Sendable {
    package enum Event: Sendable {
        /// A message from the log's writer; its receipts are not for this loop.
        case log(LogMessage)
        /// A client opened a stream, for some kinds or for all, from a cursor; 0 if everything was
        /// stale for it. The epoch is that of the cursor.
        case streamOpened(ClientKey, kinds: Set<String>?, resuming: UInt64, in: EpochID)
        /// A client's stream, for some kinds or for all, ended.
        case streamEnded(ClientKey, kinds: Set<String>?)
        case polled(ClientKey)
        /// A client acknowledged everything up to a cursor, judged in an epoch.
        case acknowledged(ClientKey, upTo: UInt64, in: EpochID)
    }

    /// The parts of the gateway that the shell uses.
    package struct Dependencies: Sendable {
        /// Returns the sender for a push; `nil` if none is configured. It calls the second argument
        /// once, when the answer to a question of the push has arrived.
        package typealias Sender = @Sendable (DuePush, @escaping Asked) -> (any PushSender)?
        /// Records that a source of content has answered, now or for an earlier push; returns
        /// whether the push may still be sent.
        package typealias Asked = @Sendable (_ isNew: Bool) async -> Bool

        /// The place where the state of pushes is stored.
        let store: SQLiteStore
        /// Removes an address from a client's registration.
        let drop: @Sendable (ClientKey, DeliveryAddress) async throws -> Void
        /// Returns the id of a client's streams: everything up to it was sent on all of them.
        let sent: @Sendable (ClientKey) async throws -> UInt64
        let sender: Sender
        /// Returns when a change was accepted, in milliseconds since 1970; `nil` for an old one.
        let acceptTime: @Sendable (UInt64) -> Int64?
        /// Whether no other gateway can push now.
        let mayPush: @Sendable () -> Bool

        package init(
            store: SQLiteStore,
            drop: @escaping @Sendable (ClientKey, DeliveryAddress) async throws -> Void,
            sent: @escaping @Sendable (ClientKey) async throws -> UInt64 = { _ in .max },
            sender: @escaping Sender,
            acceptTime: @escaping @Sendable (UInt64) -> Int64?,
            mayPush: @escaping @Sendable () -> Bool = { true }
        ) {
            self.store = store
            self.drop = drop
            self.sent = sent
            self.sender = sender
            self.acceptTime = acceptTime
            self.mayPush = mayPush
        }
    }

    /// The interval at which changes are persisted.
    private static let savingInterval = TimeAmount.seconds(1)
    /// The interval between two counts of the clients by status; each visits every client.
    private static let censusInterval = TimeAmount.seconds(10)
    /// The maximum number of clients, and of attempts, persisted in one transaction.
    private static let savedMax = 1_000
    /// The maximum number of attempts waiting to be persisted; beyond it the oldest are dropped.
    private static let attemptsMax = 100_000
    /// The longest single wait, in milliseconds; longer waits are split.
    private static let waitMax: Int64 = 86_400_000
    /// The maximum number of clients that are restored before other events are looked at.
    static let restoredMax = 16

    let loop: any EventLoop
    /// Push problems that need an operator.
    package let events = PushAlerts()
    let clock: GatewayClock
    let registry: Registry
    private let metrics: GatewayMetrics
    private let logger: Logger
    private let tracing: GatewayTracing?
    package let log: SampledLog
    private var failing = FailingAddresses<FailingAddress>()
    private let inbox = Mutex<(events: [Event], isScheduled: Bool)>(([], false))
    private let reachedPosition: Atomic<UInt64>
    private let lastStatusCounts = Mutex(PushScheduler.StatusCounts())
    var scheduler: PushScheduler
    var duty: Duty
    private var dependencies: Dependencies?
    /// The epoch of the cursors that pushes carry.
    private var epoch: EpochID
    var attempts: Deque<PushAttemptRow> = []
    private var timer: (at: Int64, task: Task<Void, Never>)?
    /// Events taken from the inbox that have not been applied yet.
    private var pending = CircularBuffer<Event>()
    private let turn: TurnRecorder
    private var isSaving = false
    /// Whether ``actSoon()`` has yet to act.
    private var isAboutToAct = false
    /// The position up to which nothing is owed but what is stored, as last stored itself.
    private var clear: UInt64 = 0
    private var isStopping = false

    /// Creates a loop that sends no push before ``start(_:)``.
    ///
    /// - Parameter rests: Whether it waits for ``lead(from:)``.
    package init(
        loop: any EventLoop, scheduler: PushScheduler, rests: Bool = false, registry: Registry,
        epoch: EpochID, clock: GatewayClock, metrics: GatewayMetrics, tracing: GatewayTracing?,
        logger: Logger, pushLogger: Logger
    ) {
        self.loop = loop
        duty = rests ? .resting : .pushing
        self.registry = registry
        self.epoch = epoch
        self.scheduler = scheduler
        self.clock = clock
        self.metrics = metrics
        self.tracing = tracing
        self.logger = logger
        log = SampledLog(pushLogger, now: clock.now)
        turn = metrics.turns(of: .push)
        reachedPosition = Atomic(scheduler.position)
    }

    // MARK: From other threads

    package func submit(_ events: [Event]) {
        let mustSchedule = inbox.withLock { inbox in
            inbox.events.append(contentsOf: events)
            defer { inbox.isScheduled = true }
            return !inbox.isScheduled
        }
        if mustSchedule { loop.execute { self.takeEvents() } }
    }

    /// The last log entry whose pushes are decided; `nil` while a new leader restores its clients.
    package var position: UInt64? {
        let position = reachedPosition.load(ordering: .relaxed)
        return position == .max ? nil : position
    }

    /// Returns whether everything that was submitted has been applied.
    func isCaughtUp() async throws -> Bool {
        try await loop.submit {
            self.pending.isEmpty && self.inbox.withLock { $0.events.isEmpty }
        }.get()
    }

    /// The numbers of clients by status, as last counted.
    package var standings: PushScheduler.StatusCounts { lastStatusCounts.withLock { $0 } }

    /// Evaluates a question about the scheduler's state at its time, in monotonic milliseconds.
    func ask<Answer: Sendable>(
        _ question: @escaping @Sendable (_ scheduler: PushScheduler, _ now: Int64) -> Answer
    ) async throws -> Answer {
        try await loop.submit { question(self.scheduler, self.now) }.get()
    }

    /// Asks the scheduler about clients: only the gateway that pushes knows all of them.
    ///
    /// - Throws: ``EngineError/cluster(_:)`` if it does not push, or still restores them.
    func askLeading<Answer: Sendable>(
        _ question: @escaping @Sendable (_ scheduler: PushScheduler, _ now: Int64) -> Answer
    ) async throws -> Answer {
        try await loop.submit {
            guard case .pushing = self.duty else { throw EngineError.cluster(.noWrites) }
            return question(self.scheduler, self.now)
        }.get()
    }

    /// Pushes to a client again at once, on a person's request.
    package func resend(_ key: ClientKey, channel: NotificationChannel) async throws
        -> PushScheduler.Resent
    {
        try await loop.submit { [self] in
            guard dependencies != nil, !isStopping, case .pushing = duty else { return .busy }
            let resent = scheduler.resend(key, channel: channel, now: now)
            act()
            return resent
        }.get()
    }

    /// Applies new settings to the scheduler; the senders have been replaced already.
    package func configure(
        _ terms: PushScheduler.Terms, mended: Set<PushScheduler.AppService>, liftsStops: Bool
    ) {
        loop.execute { [self] in
            scheduler.configure(terms, mended: mended, liftsStops: liftsStops, now: now)
            act()
        }
    }

    /// Begins to push, starting with what is due already.
    package func start(_ dependencies: Dependencies) {
        loop.execute { [self] in
            self.dependencies = dependencies
            act()
            save()
            count()
        }
    }

    /// Sends no more pushes, and persists everything once those in flight have ended.
    ///
    /// - Parameter drain: Returns when the pushes in flight have ended.
    package func stop(_ drain: () async -> Void) async {
        try? await loop.submit {
            self.isStopping = true
            self.timer?.task.cancel()
        }.get()
        await drain()
        while let batch = try? await loop.submit({ self.takeBatch() }).get(), !batch.isEmpty {
            guard let store = try? await loop.submit({ self.dependencies?.store }).get(),
                await Self.write(batch, to: store, logger)
            else { return }
        }
    }

    // MARK: The loop

    /// Monotonic milliseconds.
    var now: Int64 { clock.now() }

    /// The CPU time after which the loop is yielded to push results and operators' questions.
    private static let turnNanoseconds: Int64 = 2_000_000

    /// Applies events in order; continues in a later turn if that takes long.
    func takeEvents() {
        let began = gateway_thread_cpu_nanoseconds()
        let now = now
        var hasTime = true
        while hasTime {
            if restorePortion(now: now) {
                // Before the events that came meanwhile.
            } else if takeInbox(), let event = pending.popFirst() {
                apply(event, now: now)
            } else {
                scheduler.lookAtRestored(now: now)
                break
            }
            hasTime = gateway_thread_cpu_nanoseconds() - began < Self.turnNanoseconds
        }
        notePosition()
        act()
        turn.record(nanoseconds: gateway_thread_cpu_nanoseconds() - began)
        if !hasTime { loop.execute { self.takeEvents() } }
    }

    func notePosition() {
        let isRestoring = if case .restoring = duty { true } else { false }
        reachedPosition.store(isRestoring ? .max : scheduler.position, ordering: .relaxed)
    }

    /// Refills the pending events from the inbox; returns whether there are any.
    private func takeInbox() -> Bool {
        guard pending.isEmpty else { return true }
        let events = inbox.withLock { inbox in
            inbox.isScheduled = !inbox.events.isEmpty
            defer { inbox.events = [] }
            return inbox.events
        }
        pending.append(contentsOf: events)
        return !pending.isEmpty
    }

    private func apply(_ event: Event, now: Int64) {
        switch event {
        case .log(.entry(let entry)): scheduler.apply(entry, now: now)
        case .log(.registered(let record, let app, _)):
            let key = ClientKey(app: app, client: record.client)
            guard case .pushing = duty else { break }
            scheduler.registered(
                record, app: app, heard: heard(of: key), now: now, wall: clock.wallMilliseconds())
        case .log(.confirmed(let record, let app, _)):
            scheduler.confirmed(record, app: app, now: now)
        case .log(.removed(let key)): scheduler.removed(key)
        case .log(.sealed(let versions)): scheduler.adopt(versions)
        case .log(.traced): break
        case .log(.epoch(let epoch)): begin(epoch, now: now)
        case .streamOpened(let key, let kinds, let cursor, let epoch):
            // A cursor that has been voided since confirms nothing.
            let cursor = isVoid(epoch) ? 0 : cursor
            scheduler.streamOpened(key, kinds: kinds, resuming: cursor, now: now)
        case .streamEnded(let key, let kinds):
            scheduler.streamEnded(key, kinds: kinds, now: now)
        case .polled(let key): scheduler.polled(key, now: now)
        case .acknowledged(let key, let cursor, let epoch):
            guard !isVoid(epoch) else { break }
            scheduler.acknowledged(key, upTo: cursor, now: now)
        }
    }

    private func isVoid(_ epoch: EpochID) -> Bool { epoch.ordinal < self.epoch.ordinal }

    /// Marks everything as owed to all clients, on disk too, because the log lost a tail.
    private func begin(_ epoch: EpochID, now: Int64) {
        // Pushes decided in the old epoch carry its cursors.
        act()
        self.epoch = epoch
        forgetPositions(now: now)
    }

    func forgetPositions(now: Int64) {
        scheduler.forgetPositions(now: now)
        guard case .pushing = duty, let store = dependencies?.store else { return }
        // Once this is stored, the next start need not repeat it.
        let changed = scheduler.takeChanged(limit: .max, now: now, wall: clock.wallMilliseconds())
        scheduler.putBack(changed.filter { $0.saved == nil }.map { $0.key })
        let rows = changed.map { PushClientRow($0.key, $0.saved) }
        Task { [logger] in
            do {
                // However many there are: a full queue must not refuse them.
                _ = try await store.write(cost: 256) {
                    try $0.replaceVoidPositions(with: rows)
                }
            } catch {
                logger.error(
                    "cannot replace void push positions",
                    metadata: ["error": "\(error)"])
            }
        }
    }

    /// Performs the scheduler's actions and schedules the next wake-up.
    private func act() {
        guard let dependencies, !isStopping else { return }
        // A push that ends at once leads to further actions.
        var actions = scheduler.takeActions()
        while !actions.isEmpty {
            for action in actions { perform(action, dependencies) }
            actions = scheduler.takeActions()
        }
        schedule()
    }

    /// Acts once for all pushes that end at about the same time, so that the next ones begin
    /// together.
    private func actSoon() {
        guard !isAboutToAct else { return }
        isAboutToAct = true
        loop.execute { [self] in
            isAboutToAct = false
            act()
        }
    }

    private func perform(_ action: PushScheduler.Action, _ dependencies: Dependencies) {
        switch action {
        case .push(let order): push(order, dependencies)
        case .readSent(let key): readSent(of: key, dependencies)
        case .drop(let key, let address):
            let logger = logger
            Task {
                do {
                    try await dependencies.drop(key, address)
                } catch {
                    // The address is not pushed to in any case; the registration still shows it.
                    logger.warning(
                        "cannot remove a dead address", metadata: ["error": "\(error)"])
                }
            }
        case .disabled(let key, _, let reason):
            note(reason.alert, app: key.app, client: key.client, dependencies)
        case .sourceFailed(let app, let type, let failure):
            note(
                .contentFailing, app: app, channel: NotificationChannel.liveactivity.rawValue,
                reason: "\(failure.rawValue), for \(type)", dependencies)
        }
    }

    /// Reads the id of the streams of a client that is about to be pushed to.
    private func readSent(of key: ClientKey, _ dependencies: Dependencies) {
        Task {
            let sent = try? await dependencies.sent(key)
            loop.execute { [self] in
                scheduler.received(sentUpTo: sent, about: key, now: now)
                act()
            }
        }
    }

    /// Records a problem that needs an operator, and logs it: a repeated one is logged the first
    /// time, the second, the fourth and so on.
    private func note(
        _ kind: PushAlert, app: String, client: String? = nil, channel: String? = nil,
        reason: String? = nil, host: String? = nil, topics: TopicMismatch? = nil,
        _ dependencies: Dependencies
    ) {
        metrics.pushEvent(kind)
        let event = events.note(
            kind, app: app, client: client, channel: channel, reason: reason, host: host,
            topics: topics, at: clock.wallMilliseconds())
        guard event.times & (event.times - 1) == 0 else { return }
        // Sampled: clients choose the topics and hosts that the text may name.
        log.log(
            .pushAlert, of: "\(app) \(kind.rawValue)",
            [
                "app": "\(app)", "client": "\(client ?? "-")", "event": "\(kind.rawValue)",
                "problem": "\(event.text)", "times": "\(event.times)",
            ])
    }

    private func push(_ order: DuePush, _ dependencies: Dependencies) {
        var order = order
        order.epoch = epoch
        let asked: Dependencies.Asked = { [self, number = order.number] isNew in
            let isWanted = try? await loop.submit {
                self.contentArrived(number, isNew: isNew)
            }.get()
            return isWanted ?? false && dependencies.mayPush()
        }
        guard let sender = dependencies.sender(order, asked) else {
            // No sender is configured: the push waits for a configuration.
            scheduler.finished(
                order.number, .service(.stop(.credential)), now: now, random: 0)
            return
        }
        guard dependencies.mayPush() else {
            // The lease is over, but this loop does not know yet: another gateway may push already.
            scheduler.finished(order.number, .notSent, now: now, random: 0)
            return
        }
        if order.activity != nil {
            let timestamp = scheduler.stamp(order, wall: clock.wallSeconds())
            order.activity?.timestamp = timestamp
        }
        let began = now
        sender.send(order) { [self, order] report in
            loop.execute { self.finished(order, report, began: began) }
        }
    }

    private func contentArrived(_ number: UInt64, isNew: Bool) -> Bool {
        defer { act() }
        return scheduler.contentArrived(number, isNew: isNew, now: now)
    }

    private func finished(_ order: DuePush, _ report: PushReport, began: Int64) {
        let now = now
        // A push requested by a person has no consequences, whatever the response.
        let outcome: PushOutcome =
            order.isManual && report.outcome != .sent ? .failed : report.outcome
        metrics.pushEnded(
            order.channel, outcome.rawValue, report.reason, seconds: Double(now - began) / 1000)
        if !order.isManual, report.result != .notSent {
            observeFreshness(order, report)
            if outcome == .sent, scheduler.isAcknowledged(order) {
                metrics.needlessReload(of: order.content.kindLabel, "acknowledged")
            }
            logEnd(of: order, report, outcome, milliseconds: now - began)
        }
        tracing?.pushed(order, report, outcome, milliseconds: now - began)
        if let alert = report.alert, !order.isManual, let dependencies {
            note(
                alert, app: order.client.app, channel: order.channel,
                reason: report.reason ?? outcome.rawValue, host: order.host,
                topics: alert == .pairingRefused ? order.topics(of: report) : nil, dependencies)
        }
        if case .pushing = duty, dependencies != nil {
            record(order, report, outcome, milliseconds: now - began)
        }
        scheduler.finished(
            order.number, report.result, ends: report.ends, now: now,
            // Only retries are spread, and the system's randomness costs a system call.
            random: outcome == .sent ? 0 : .random(in: .min ... .max))
        actSoon()
    }

    /// Records an attempt, to be persisted.
    private func record(
        _ order: DuePush, _ report: PushReport, _ outcome: PushOutcome, milliseconds: Int64
    ) {
        attempts.append(
            PushAttemptRow(
                at: clock.wallMilliseconds(),
                key: RegistrationKey(app: order.client.app, client: order.client.client),
                channel: order.channel, outcome: outcome.rawValue, reason: report.reason,
                reference: report.reference, milliseconds: milliseconds,
                sequence: order.content.sequence > 0 ? order.content.sequence : nil,
                cause: order.cause.rawValue))
        if attempts.count > Self.attemptsMax { attempts.removeFirst(Self.attemptsMax / 10) }
    }

    /// Logs when the pushes to an address begin to fail and when they succeed again, and at debug
    /// each push.
    private func logEnd(
        of order: DuePush, _ report: PushReport, _ outcome: PushOutcome, milliseconds: Int64
    ) {
        func fields() -> Logger.Metadata {
            [
                "app": "\(order.client.app)", "client": "\(order.client.client)",
                "channel": "\(order.channel)", "outcome": "\(outcome.rawValue)",
                "reason": "\(report.reason ?? "-")", "milliseconds": "\(milliseconds)",
            ]
        }
        let address = FailingAddress(client: order.client, channel: order.channel)
        switch failing.ended(at: address, isSent: !outcome.isFailure) {
        case .fails:
            log.log(
                .failingPush, of: "\(order.client.app) \(order.channel)", fields())
        case .worksAgain:
            log.log(
                .succeedingPush, of: "\(order.client.app) \(order.channel)", fields())
        case nil:
            log.debug("a push ended", fields())
        }
    }

    /// Measures the time from a change to its push, for the latest change that the push covers.
    private func observeFreshness(_ order: DuePush, _ report: PushReport) {
        guard report.outcome == .sent, !order.content.all,
            let dependencies, let accepted = dependencies.acceptTime(order.content.sequence)
        else { return }
        let channel: DeliveryChannel
        switch order.address {
        case .webhook: channel = .webhook
        case .webPush: channel = .webpush
        case .fcm: channel = .fcm
        case .stream, .apns: channel = .apns
        }
        metrics.freshnessSent[channel]?.record(
            Double(max(0, clock.wallMilliseconds() - accepted)) / 1000,
            kind: order.content.kindLabel)
    }

    private func schedule() {
        guard let due = scheduler.nextDue else { return }
        if let timer, timer.at <= due { return }
        timer?.task.cancel()
        let end = min(due, now + Self.waitMax)
        let task = Task { [loop, clock] in
            await clock.sleep(end)
            if !Task.isCancelled { loop.execute { self.timerRang(due) } }
        }
        timer = (due, task)
    }

    private func timerRang(_ due: Int64) {
        // Another timer may have been set after this one fired.
        guard timer?.at == due else { return }
        timer = nil
        scheduler.advance(now: now)
        act()
    }

    /// Counts the clients by status, and schedules the next count.
    private func count() {
        guard !isStopping else { return }
        let statusCounts = scheduler.statusCounts(now: now)
        lastStatusCounts.withLock { $0 = statusCounts }
        loop.scheduleTask(in: Self.censusInterval) { self.count() }
    }

    // MARK: Persisting

    /// The rows of one transaction.
    private struct Batch: Sendable {
        let clients: [PushClientRow]
        let attempts: [PushAttemptRow]
        /// The position up to which clients are owed only what their rows say; `nil` to leave it.
        var clear: UInt64?

        var isEmpty: Bool { clients.isEmpty && attempts.isEmpty && clear == nil }
        /// Whether there may be more.
        var isFull: Bool { max(clients.count, attempts.count) >= PushLoop.savedMax }
    }

    private func takeBatch() -> Batch {
        guard case .pushing = duty else { return Batch(clients: [], attempts: []) }
        let clients = scheduler.takeChanged(
            limit: Self.savedMax, now: now, wall: clock.wallMilliseconds())
        defer { attempts.removeFirst(min(attempts.count, Self.savedMax)) }
        var batch = Batch(
            clients: clients.map { PushClientRow($0.key, $0.saved) },
            attempts: Array(attempts.prefix(Self.savedMax)))
        // The rows of all other clients are stored, unless a batch is being written.
        if clients.count < Self.savedMax, !isSaving, scheduler.clear > clear {
            clear = scheduler.clear
            batch.clear = clear
        }
        return batch
    }

    /// Persists changes and schedules the next save: at once if there is more, else after a while.
    private func save() {
        guard let store = dependencies?.store, !isSaving, !isStopping else { return }
        let batch = takeBatch()
        guard !batch.isEmpty else {
            loop.scheduleTask(in: Self.savingInterval) { self.save() }
            return
        }
        isSaving = true
        Task { [logger] in
            let isSaved = await Self.write(batch, to: store, logger)
            loop.execute { [self] in
                isSaving = false
                if !isSaved {
                    attempts.prepend(contentsOf: batch.attempts)
                    scheduler.putBack(
                        batch.clients.map { ClientKey(app: $0.key.app, client: $0.key.client) })
                }
                let hasMore = isSaved && batch.isFull
                loop.scheduleTask(in: hasMore ? .zero : Self.savingInterval) { self.save() }
            }
        }
    }

    private static func write(_ batch: Batch, to store: SQLiteStore, _ logger: Logger) async -> Bool
    {
        do {
            _ = try await store.write(
                cost: 1024 * batch.clients.count + 128 * batch.attempts.count
            ) { transaction in
                try transaction.putPushClients(batch.clients)
                try transaction.appendPushAttempts(batch.attempts)
                if let clear = batch.clear { try transaction.putPushes(clearUpTo: clear) }
            }
            return true
        } catch {
            logger.error(
                "cannot record push attempts", metadata: ["error": "\(error)"])
            return false
        }
    }
}

extension DuePush {
    /// The push channel, for people.
    var channel: String { address.channel.rawValue }

    /// The host of the push service that a browser chose; `nil` for another address.
    fileprivate var host: String? {
        guard case .webPush(let push) = address else { return nil }
        return try? WebhookEndpoint(push.endpoint).host
    }

    /// The topic that was used and the one that the client registered; `nil` for no topic.
    fileprivate func topics(of report: PushReport) -> TopicMismatch? {
        guard case .apns(let apns) = address, let used = report.topic else { return nil }
        return TopicMismatch(used: used, registered: apns.topic)
    }
}

/// A client's addresses of one channel.
private struct FailingAddress: Hashable {
    let client: ClientKey
    let channel: String
}
