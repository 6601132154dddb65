import CoreMetrics
import GatewayCore
import GatewayOperations
import GatewaySigning
import GatewayTLS
import Logging
import NIOCore
import Synchronization
import WidgetModel

/// One event loop's part of the gateway: a shard, and the streams whose connections belong to the
/// loop. The thin shell around the core's `Shard`: it passes in time and log entries, signs, and
/// writes.
// Sound: everything except `inbox` and the constants is touched on `loop` only, which each entry
// point checks or hops to.
package final class ShardLoop: @unchecked Sendable {
    /// The parameters of a new stream or of a poll.
    package struct Opening {
        let key: ClientKey
        /// The conditions that the registration in force must meet when the loop acts on it.
        let terms: RegistrationTerms
        /// The cursor that the client presented.
        let cursor: JudgedCursor
        let kinds: Set<String>?
        /// The token that admitted it; the stream ends when the token is no longer valid.
        let grant: StreamGrant
        /// The end of the token's validity, in seconds since 1970; the stream ends with it.
        let expires: Int64

        package init(
            key: ClientKey, terms: RegistrationTerms, cursor: JudgedCursor, kinds: Set<String>?,
            grant: StreamGrant, expires: Int64
        ) {
            self.key = key
            self.terms = terms
            self.cursor = cursor
            self.kinds = kinds
            self.grant = grant
            self.expires = expires
        }
    }

    /// The reason why a stream is not opened, or a poll not answered.
    package enum Failure: Error {
        /// The request is rejected under the current state.
        case refused(EngineError)
        /// The gateway is stopping, or the connection is gone.
        case unavailable
    }

    /// The transport of a stream.
    package enum Carrier {
        /// An HTTP/1.1 connection, and the head of the response.
        case connection(TLSConnection, head: [UInt8])
        /// Any other transport; heartbeats are only sent where they are read.
        case sink(any EventSink, wantsHeartbeat: Bool)
    }

    /// The part of a stream that a delivery needs.
    struct Session {
        /// `nil` if no stream uses the slot.
        var id: StreamID?
        /// The position of the last id sent to the stream.
        var watermark: UInt64 = 0
        /// An HTTP/1.1 stream; `nil` if `sink` is set.
        var stream: TLSStream?
        var sink: (any EventSink)?
    }

    /// The part of a stream that is needed only when its state changes.
    struct SessionDetail {
        let key: ClientKey
        let token: VerifiedToken
        /// Whether the push scheduler knows of the stream.
        var isNoted = false
        let isPoll: Bool
        let kinds: Set<String>?
        /// The time of opening, in monotonic milliseconds.
        let openedAt: Int64
        /// The time since which nothing more fits, in monotonic milliseconds.
        fileprivate(set) var stalledSince: Int64?
    }

    private struct Wait {
        let position: UInt64
        let ordinal: UInt32
        let resume: () -> Void
    }

    package struct PollAnswer {
        package let stale: StaleSet
        /// The position and the epoch to which the answer applies.
        package let position: UInt64
        package let epoch: EpochID
        /// The position at which the client actually resumed.
        package let point: ResumePoint
    }

    package let loop: any EventLoop
    /// Its index among the event loops.
    let index: LoopIndex
    let settings: StreamSettings
    let signer: NotificationSigner
    let registry: Registry
    let metrics: GatewayMetrics
    let cursors: CursorCodec
    let clock: GatewayClock
    /// Receives the events of streams whose clients have pushes; `nil` where nothing is pushed.
    let push: PushLoop?
    /// `nil` where nothing is traced.
    let tracing: GatewayTracing?
    let logger: Logger
    /// Where the ends of streams are logged that clients cause; `nil` for nowhere.
    let sampledLog: SampledLog?
    private let tlsSettings: TLSServerSettings
    private let inbox = Mutex<(messages: [LogMessage], isScheduled: Bool)>(([], false))
    /// Messages taken from the inbox that wait for a later turn.
    private var backlog: ArraySlice<LogMessage> = []
    /// The number of keys looked up in one turn of the loop; the rest waits for the next.
    private static let keysPerTurn = 8_192
    /// The cost of a message in addition to its keys, in keys.
    private static let messageKeys = 8
    private let openStreamCount = Atomic<Int>(0)
    private let reachedPosition = Atomic<UInt64>(0)
    private let published = Mutex(ShardStats())

    var shard: Shard
    /// The epoch of the cursors that the loop issues.
    private(set) var epoch: EpochID
    /// The TLS connections among the streams.
    private(set) lazy var connections = TLSStreams(
        loop: loop, settings: tlsSettings,
        owner: .init(
            drained: { [unowned self] in if let id = id(named: $0) { drained(id) } },
            ended: { [unowned self] in if let id = id(named: $0) { close(id) } }))
    var sessions: [Session] = []
    var details: [SessionDetail?] = []
    var writing = Writing()
    var timer: LoopTimer
    /// The sweep in progress, if there is one.
    var accessSweep: AccessSweep?
    private var waiting: [Wait] = []
    private(set) var isDraining = false
    /// The number of streams that accept no bytes.
    private var lagging = 0

    init(
        loop: any EventLoop, index: LoopIndex, shard: Shard, settings: StreamSettings,
        tlsSettings: TLSServerSettings, signer: NotificationSigner, registry: Registry,
        metrics: GatewayMetrics, cursors: CursorCodec, clock: GatewayClock, push: PushLoop?,
        tracing: GatewayTracing?, logger: Logger, sampledLog: SampledLog?
    ) {
        self.loop = loop
        self.index = index
        self.shard = shard
        self.settings = settings
        timer = LoopTimer(settings)
        self.tlsSettings = tlsSettings
        self.signer = signer
        self.registry = registry
        self.metrics = metrics
        self.cursors = cursors
        self.clock = clock
        epoch = cursors.epoch
        self.push = push
        self.tracing = tracing
        self.logger = logger
        self.sampledLog = sampledLog
        reachedPosition.store(shard.position, ordering: .relaxed)
    }

    // MARK: From other threads

    package var openStreams: Int { openStreamCount.load(ordering: .relaxed) }

    /// The last log entry applied.
    package var position: UInt64 { reachedPosition.load(ordering: .relaxed) }

    /// The status of the shard a second ago.
    package var figures: ShardStats { published.withLock { $0 } }

    /// Hands messages of the log's writer or the version sealer to the loop, in order.
    func submit(_ messages: [LogMessage]) {
        let mustSchedule = inbox.withLock { inbox in
            inbox.messages.append(contentsOf: messages)
            defer { inbox.isScheduled = true }
            return !inbox.isScheduled
        }
        if mustSchedule { loop.execute { self.takeMessages() } }
    }

    // MARK: The log

    private func takeMessages() {
        if backlog.isEmpty {
            backlog = inbox.withLock { inbox in
                defer { inbox.messages = [] }
                return inbox.messages[...]
            }
        }
        let now = now
        let wall = clock.wallMilliseconds()
        var traced: [TracedChange] = []
        var keys = 0
        while keys < Self.keysPerTurn, let message = backlog.popFirst() {
            keys += Self.messageKeys
            switch message {
            case .entry(let entry):
                shard.apply(entry, now: now)
                keys += entry.keyCount
                metrics.freshnessDecided.record(Double(max(0, wall - entry.acceptedAt)) / 1000)
            case .registered(let record, let app, let receipts):
                follow(ClientKey(app: app, client: record.client))
                receipts.record(shard.position)
            case .confirmed(let record, let app, let receipts):
                shard.confirmed(record, app: app)
                receipts.record(shard.position)
            case .removed(let key): shard.removed(client: key.client, app: key.app)
            case .epoch(let epoch): begin(epoch)
            case .sealed(let versions): shard.adopt(versions)
            case .traced(let change): traced.append(change)
            }
        }
        reachedPosition.store(shard.position, ordering: .relaxed)
        pump()
        for change in traced { change.passed() }
        resumeWaiting()
        scheduleWindow()
        goOnTaking()
    }

    /// Applies the registration in force to a client's streams; ends them if there is none.
    ///
    /// It may be newer than the message that arrived. Streams opened with the newer one must not
    /// get back widgets that their client no longer has.
    private func follow(_ key: ClientKey) {
        if let record = registry.record(key) {
            shard.registered(record, app: key.app)
            guard record.isPushable, push != nil else { return }
            // The registry knows what the streams that were open before have confirmed.
            for stream in registry.streams(of: key) where stream.loop == index {
                notePush(stream.id, resuming: 0)
            }
        } else {
            shard.removed(client: key.client, app: key.app)
        }
    }

    /// Schedules a later turn for the remaining messages, after the loop has polled its sockets: a
    /// loop runs all ready tasks before it does that.
    private func goOnTaking() {
        if backlog.isEmpty {
            backlog = []
            let isEmpty = inbox.withLock { inbox in
                inbox.isScheduled = !inbox.messages.isEmpty
                return inbox.messages.isEmpty
            }
            if isEmpty { return }
            return loop.execute { self.takeMessages() }
        }
        loop.scheduleTask(in: .milliseconds(1)) { self.takeMessages() }
    }

    /// Begins an epoch after a lost tail: notifies every open stream that everything is stale.
    private func begin(_ epoch: EpochID) {
        // Earlier notifications are sent with cursors of the previous epoch, which are void.
        pump()
        self.epoch = epoch
        writing.heartbeat = nil
        for slot in sessions.indices { sessions[slot].watermark = 0 }
        shard.voidCursors()
        pump()
    }

    /// Calls `body` on the loop once the shard has reached `position`, in the epoch of a cursor or
    /// a later one.
    package func whenReached(
        _ position: UInt64, in epoch: EpochID? = nil, _ body: @escaping () -> Void
    ) {
        loop.assertInEventLoop()
        let wait = Wait(position: position, ordinal: epoch?.ordinal ?? 0, resume: body)
        if hasReached(wait) { body() } else { waiting.append(wait) }
    }

    private func hasReached(_ wait: Wait) -> Bool {
        shard.position >= wait.position && epoch.ordinal >= wait.ordinal
    }

    private func resumeWaiting() {
        guard !waiting.isEmpty else { return }
        let ready = waiting.filter(hasReached)
        waiting.removeAll(where: hasReached)
        for wait in ready { wait.resume() }
    }

    // MARK: Questions

    /// Returns a client's stale timelines, by the registration and the epoch in force.
    package func poll(_ opening: Opening) throws(Failure) -> PollAnswer {
        loop.assertInEventLoop()
        let record = try record(for: opening)
        let point = opening.cursor.point(in: epoch)
        guard
            let stale = shard.poll(
                record, app: opening.key.app, since: point, kinds: opening.kinds)
        else { throw .refused(.unknownApp) }
        return PollAnswer(stale: stale, position: shard.position, epoch: epoch, point: point)
    }

    /// Returns the registration in force of the requesting client. The shard has applied it, or its
    /// message is still queued.
    ///
    /// - Throws: ``Failure`` if the token is no longer trusted, or the terms are not met.
    private func record(for opening: Opening) throws(Failure) -> ClientRecord {
        guard opening.grant.isInForce else { throw .refused(.tokenRevoked) }
        do throws(RegistrationTerms.Rejection) {
            return try opening.terms.accept(registry.record(opening.key))
        } catch {
            throw .refused(EngineError(error))
        }
    }

    /// Returns the kinds whose recommendation sets are owed to a client, with the position at which
    /// that holds; `nil` for an app without a catalog.
    func owedSets(
        of record: ClientRecord, app: String
    ) -> (kinds: Set<String>, position: UInt64)? {
        loop.assertInEventLoop()
        guard
            let stale = shard.poll(
                record, app: app, since: .after(shard.position), kinds: nil)
        else { return nil }
        let kinds =
            stale.all
            ? record.confirmed.keys.map { $0 }
            : stale.names.filter { $0.target == .recommendations }.map(\.kind)
        return (Set(kinds), shard.position)
    }

    /// The keys that a client's streams delivered after `floor`, for each of its widgets.
    func toldKeys(
        of widgets: [ConfiguredWidget], of record: ClientRecord, app: String, after floor: UInt64
    ) async throws -> [[NotifiedKey]] {
        try await loop.submit {
            widgets.map {
                self.shard.toldKeys(
                    of: $0, attributes: record.attributes, app: app, after: floor)
            }
        }.get()
    }

    // MARK: Streams

    /// Opens a stream with the registration in force. It receives the catch-up or, if there is
    /// none, its current cursor.
    ///
    /// - Parameter makeCarrier: Called when the stream can be opened, with the position at which
    ///   the client actually resumes; returns `nil` if the connection is gone.
    /// - Returns: Also the stream that it replaces, for ``ShardLoops/end(_:)``.
    /// - Throws: ``Failure``; the caller must then close what it made.
    package func open(
        _ opening: Opening, on makeCarrier: (ResumePoint) -> Carrier?
    ) throws(Failure) -> (id: StreamID, replaced: Registry.OpenStream?) {
        loop.assertInEventLoop()
        guard !isDraining, !writing.isPumping else { throw .unavailable }
        let record = try record(for: opening)
        guard shard.ruleSet(of: opening.key.app) != nil else {
            throw .refused(.unknownApp)
        }
        let point = opening.cursor.point(in: epoch)
        guard let carrier = makeCarrier(point),
            let id = shard.open(
                record, app: opening.key.app, since: point, kinds: opening.kinds)
        else { throw .unavailable }
        var session = Session(id: id)
        if case .after(let sequence) = point { session.watermark = sequence }
        var wantsHeartbeat = true
        switch carrier {
        case .connection(let connection, let head):
            guard let stream = connections.adopt(connection, name: Self.name(of: id)) else {
                shard.clearOutput()
                shard.close(id)
                throw .unavailable
            }
            session.stream = stream
            writing.preface = head
        case .sink(let sink, let wanted):
            session.sink = sink
            wantsHeartbeat = wanted
        }
        while sessions.count <= Int(id.slot) {
            sessions.append(Session())
            details.append(nil)
        }
        sessions[Int(id.slot)] = session
        details[Int(id.slot)] = SessionDetail(
            key: opening.key, token: opening.grant.token, isPoll: !wantsHeartbeat,
            kinds: opening.kinds, openedAt: now)
        // A stream limited to some kinds confirms nothing about the others.
        let resumed = opening.kinds == nil ? sessions[Int(id.slot)].watermark : 0
        if record.isPushable { notePush(id, resuming: resumed) }
        openStreamCount.wrappingAdd(1, ordering: .relaxed)
        metrics.streamsOpened.increment()
        let replaced = registry.noteStream(
            opening.key,
            .init(
                loop: index, id: id, isPoll: !wantsHeartbeat, isWhole: opening.kinds == nil))
        note(id, wantsHeartbeat: wantsHeartbeat, expires: opening.expires)
        if !shard.output.isEmpty { pump() } else if wantsHeartbeat { sendHeartbeat(id) }
        return (id, replaced)
    }

    /// Reports a stream to the push scheduler, once, which may save a push; waiting polls are not
    /// reported.
    private func notePush(_ id: StreamID, resuming cursor: UInt64) {
        guard let push, isOpen(id), let detail = details[Int(id.slot)], !detail.isNoted,
            !detail.isPoll
        else { return }
        details[Int(id.slot)]?.isNoted = true
        push.submit([
            .streamOpened(detail.key, kinds: detail.kinds, resuming: cursor, in: epoch)
        ])
    }

    /// Returns the id of a stream; the highest one if it is for some kinds, or takes no data.
    func sent(on id: StreamID) async throws -> UInt64 {
        try await loop.submit { [self] in
            guard !shard.isLagging(id), details[Int(id.slot)]?.kinds == nil else { return .max }
            return sessions[Int(id.slot)].watermark
        }.get()
    }

    /// Releases a stream that has ended. May be called more than once.
    package func close(_ id: StreamID) {
        loop.assertInEventLoop()
        guard isOpen(id), let detail = details[Int(id.slot)] else { return }
        let told = sessions[Int(id.slot)].watermark
        note(id, isStalled: false)
        metrics.streamSeconds.record(Double(now - detail.openedAt) / 1000)
        sessions[Int(id.slot)] = Session()
        details[Int(id.slot)] = nil
        shard.close(id)
        if detail.isNoted { push?.submit([.streamEnded(detail.key, kinds: detail.kinds)]) }
        registry.releaseStream(
            detail.key,
            .init(loop: index, id: id, isPoll: detail.isPoll, isWhole: detail.kinds == nil),
            toldUpTo: told, kinds: detail.kinds)
        registry.noteSeen(detail.key, now: clock.wallMilliseconds())
        openStreamCount.wrappingSubtract(1, ordering: .relaxed)
    }

    /// Ends a stream gracefully, after `farewell` if there is one.
    func end(_ id: StreamID, _ farewell: Frame? = nil) {
        guard isOpen(id) else { return }
        let session = sessions[Int(id.slot)]
        if let stream = session.stream {
            let last = (farewell?.chunk ?? []) + ChunkedCoding.last
            last.withUnsafeBytes { connections.end(stream, farewell: $0) }
            close(id)
        } else {
            // The sink reports when it is gone.
            session.sink?.end(farewell?.blocks)
        }
    }

    /// Records that the stream accepts bytes again.
    package func drained(_ id: StreamID) {
        loop.assertInEventLoop()
        guard isOpen(id), details[Int(id.slot)]?.stalledSince != nil else { return }
        writing.recovered.append(id)
        // A sink may drain while frames are being sent; the catch-up then waits until that is done.
        if !writing.isPumping { pump() }
    }

    /// Records whether an open stream is stalled, that is, accepts no bytes.
    func note(_ id: StreamID, isStalled: Bool) {
        let slot = Int(id.slot)
        guard let detail = details[slot], isStalled != (detail.stalledSince != nil) else { return }
        details[slot]?.stalledSince = isStalled ? now : nil
        lagging += isStalled ? 1 : -1
        if isStalled { metrics.streamsLagged.increment() }
    }

    func publishFigures() {
        let figures = ShardStats(
            collapsed: shard.collapsed, lagging: lagging, windows: shard.windows)
        published.withLock { $0 = figures }
    }

    func isOpen(_ id: StreamID) -> Bool {
        Int(id.slot) < sessions.count && sessions[Int(id.slot)].id == id
    }

    private static func name(of id: StreamID) -> UInt64 {
        UInt64(id.serial) << 32 | UInt64(id.slot)
    }

    private func id(named name: UInt64) -> StreamID? {
        let slot = Int(UInt32(truncatingIfNeeded: name))
        guard slot < sessions.count, let id = sessions[slot].id, Self.name(of: id) == name
        else { return nil }
        return id
    }

    // MARK: Shutdown

    /// Ends every stream, with a random reconnection time for each reader.
    ///
    /// - Returns: A future that succeeds when every connection is closed; bounded by the time that
    ///   a peer has to close its side.
    package func drain() -> EventLoopFuture<Void> {
        loop.assertInEventLoop()
        isDraining = true
        stopTimer()
        for session in sessions {
            guard let id = session.id else { continue }
            end(id, farewell)
        }
        return connections.emptied()
    }

    /// A frame with a random reconnection time.
    var farewell: Frame {
        let retry = Int.random(in: settings.drainRetryMilliseconds)
        return Frame(EventStreamEncoder.retry(milliseconds: retry))
    }

    /// Releases all resources; the loop is about to stop.
    package func stop() {
        loop.assertInEventLoop()
        isDraining = true
        stopTimer()
        connections.stop()
    }
}
