import CoreMetrics
import GatewayCore
import GatewayTLS
import Logging
import NIOCore
import Synchronization
import WidgetModel

/// One event loop's share of the gateway: a shard, and the streams whose connections live on the
/// loop. The thin shell around the core's `Shard`: it hands in time and log entries, signs, and
/// writes.
// Sound: everything but `inbox` and the constants is touched on `loop` only, which each entry
// point checks or hops to.
final class ShardLoop: @unchecked Sendable {
    /// One thing the log's writer tells the loop, in commit order.
    enum Message: Sendable {
        /// The next entry of the log.
        case entry(LogEntry)
        /// A client registered; `taken` gets the position at which the shard took it.
        case registered(ClientRecord, app: String, taken: @Sendable (UInt64) -> Void)
        /// A client confirmed recommendation sets; `taken` is called when the shard knows.
        case confirmed(ClientRecord, app: String, taken: @Sendable (UInt64) -> Void)
        /// A client was removed.
        case removed(ClientKey)
        /// The entries before are all there are of a change that is traced.
        case traced(TracedChange)
    }

    /// What a stream is opened with.
    struct Opening {
        let key: ClientKey
        let record: ClientRecord
        let vouched: [String: [String]]
        let point: ResumePoint
        let kinds: Set<String>?
        /// When the token ends, in seconds since 1970; the stream ends with it.
        let expires: Int64
    }

    /// What carries a stream.
    enum Carrier {
        /// An HTTP/1.1 connection, and the head of the answer.
        case connection(TLSConnection, head: [UInt8])
        /// Anything else; heartbeats only where somebody reads them.
        case sink(any EventSink, wantsHeartbeat: Bool)
    }

    /// What a delivery needs of a stream.
    struct Session {
        /// `nil` where no stream has the place.
        var id: StreamID?
        /// The id last given to the stream.
        var watermark: UInt64 = 0
        /// An HTTP/1.1 stream; `nil` where `sink` is not.
        var stream: TLSStream?
        var sink: (any EventSink)?
    }

    /// What is needed of a stream only when something about it changes.
    struct SessionDetail {
        let key: ClientKey
        /// Whether the desk that pushes knows of the stream.
        let isNoted: Bool
        /// The kinds it is narrowed to.
        let kinds: Set<String>?
        /// When it was opened, in monotonic milliseconds.
        let openedAt: Int64
        /// Since when nothing fits, in monotonic milliseconds.
        fileprivate(set) var stalledSince: Int64?
    }

    let loop: any EventLoop
    let settings: StreamSettings
    let press: NotificationPress
    let registry: Registry
    let metrics: GatewayMetrics
    let cursors: CursorDesk
    /// Hears of streams of clients that can be pushed to; `nil` where nothing is pushed.
    let push: PushLoop?
    /// `nil` where nothing is traced.
    let tracing: GatewayTracing?
    let logger: Logger
    private let tlsSettings: TLSServerSettings
    private let inbox = Mutex<(messages: [Message], isScheduled: Bool)>(([], false))
    private let openStreamCount = Atomic<Int>(0)
    private let reachedPosition = Atomic<UInt64>(0)
    private let published = Mutex(ShardFigures())

    var shard: Shard
    /// The TLS connections among the streams.
    private(set) lazy var connections = TLSStreams(
        loop: loop, settings: tlsSettings,
        owner: .init(
            drained: { [unowned self] in if let id = id(named: $0) { drained(id) } },
            ended: { [unowned self] in if let id = id(named: $0) { close(id) } }))
    var sessions: [Session] = []
    var details: [SessionDetail?] = []
    var writing = Writing()
    var clockwork = Clockwork()
    private var waiting: [(position: UInt64, resume: () -> Void)] = []
    private(set) var isDraining = false
    /// Streams that take no bytes.
    private var lagging = 0

    init(
        loop: any EventLoop, shard: Shard, settings: StreamSettings,
        tlsSettings: TLSServerSettings, press: NotificationPress, registry: Registry,
        metrics: GatewayMetrics, cursors: CursorDesk, push: PushLoop?, tracing: GatewayTracing?,
        logger: Logger
    ) {
        self.loop = loop
        self.shard = shard
        self.settings = settings
        self.tlsSettings = tlsSettings
        self.press = press
        self.registry = registry
        self.metrics = metrics
        self.cursors = cursors
        self.push = push
        self.tracing = tracing
        self.logger = logger
        reachedPosition.store(shard.position, ordering: .relaxed)
    }

    // MARK: From other threads

    /// Streams open now.
    var openStreams: Int { openStreamCount.load(ordering: .relaxed) }

    /// The last log entry applied.
    var position: UInt64 { reachedPosition.load(ordering: .relaxed) }

    /// How the shard stood a second ago.
    var figures: ShardFigures { published.withLock { $0 } }

    /// Hands messages to the loop, in order. Called by the log's writer only.
    func submit(_ messages: [Message]) {
        let mustSchedule = inbox.withLock { inbox in
            inbox.messages.append(contentsOf: messages)
            defer { inbox.isScheduled = true }
            return !inbox.isScheduled
        }
        if mustSchedule { loop.execute { self.takeMessages() } }
    }

    // MARK: The log

    private func takeMessages() {
        let messages = inbox.withLock { inbox in
            defer { inbox = ([], false) }
            return inbox.messages
        }
        let now = now
        let wall = cursors.wallMilliseconds()
        var traced: [TracedChange] = []
        for message in messages {
            switch message {
            case .entry(let entry):
                shard.apply(entry, now: now)
                metrics.freshnessDecided.record(Double(max(0, wall - entry.acceptedAt)) / 1000)
            case .registered(let record, let app, let taken):
                shard.registered(record, app: app)
                taken(shard.position)
            case .confirmed(let record, let app, let taken):
                shard.confirmed(record, app: app)
                taken(shard.position)
            case .removed(let key): shard.removed(client: key.client, app: key.app)
            case .traced(let change): traced.append(change)
            }
        }
        reachedPosition.store(shard.position, ordering: .relaxed)
        pump()
        for change in traced { change.passed() }
        resumeWaiting()
        scheduleWindow()
    }

    /// Calls `body` on the loop once the shard has reached `position`.
    func whenReached(_ position: UInt64, _ body: @escaping () -> Void) {
        loop.assertInEventLoop()
        if shard.position >= position { body() } else { waiting.append((position, body)) }
    }

    private func resumeWaiting() {
        guard !waiting.isEmpty else { return }
        let ready = waiting.filter { $0.position <= shard.position }
        waiting.removeAll { $0.position <= shard.position }
        for entry in ready { entry.resume() }
    }

    // MARK: Questions

    /// What is stale for a client now, and the position the answer holds for.
    func poll(
        _ record: ClientRecord, app: String, since point: ResumePoint, kinds: Set<String>?,
        vouched: [String: [String]]
    ) -> (stale: StaleSet, position: UInt64)? {
        loop.assertInEventLoop()
        return shard.poll(record.vouched(vouched), app: app, since: point, kinds: kinds)
            .map { ($0, shard.position) }
    }

    /// The kinds whose recommendation set a client is owed, and the position that holds for; `nil`
    /// for an app without a catalog.
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

    /// For each of a client's widgets, what its streams were told after `floor`.
    func toldKeys(
        of widgets: [ConfiguredWidget], of record: ClientRecord, app: String, after floor: UInt64
    ) async throws -> [[ToldKey]] {
        try await loop.submit {
            widgets.map {
                self.shard.toldKeys(
                    of: $0, attributes: record.attributes, app: app, after: floor)
            }
        }.get()
    }

    // MARK: Streams

    /// Opens a stream that was admitted by the registry. It gets the catch-up, or else the cursor
    /// it stands at.
    ///
    /// - Returns: `nil` when the gateway is stopping, the app has no catalog, or the kernel does not
    ///   watch the connection; then the caller closes what there is.
    func open(_ opening: Opening, on carrier: Carrier) -> StreamID? {
        loop.assertInEventLoop()
        guard !isDraining, !writing.isPumping,
            let id = shard.open(
                opening.record, app: opening.key.app, since: opening.point, kinds: opening.kinds,
                vouched: opening.vouched)
        else { return nil }
        var session = Session(id: id)
        if case .after(let sequence) = opening.point { session.watermark = sequence }
        var wantsHeartbeat = true
        switch carrier {
        case .connection(let connection, let head):
            guard let stream = connections.adopt(connection, name: Self.name(of: id)) else {
                shard.clearOutput()
                shard.close(id)
                return nil
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
            key: opening.key, isNoted: notePush(opening, isStream: wantsHeartbeat),
            kinds: opening.kinds, openedAt: now)
        openStreamCount.wrappingAdd(1, ordering: .relaxed)
        metrics.streamsOpened.increment()
        registry.noteStream(opening.key, on: self)
        note(id, wantsHeartbeat: wantsHeartbeat, expires: opening.expires)
        if !shard.output.isEmpty { pump() } else if wantsHeartbeat { sendHeartbeat(id) }
        return id
    }

    /// Tells the desk that pushes of a stream, which may spare a push; a poll that waits is none.
    private func notePush(_ opening: Opening, isStream: Bool) -> Bool {
        guard let push, isStream, opening.record.isPushable else { return false }
        var cursor: UInt64 = 0
        // A stream of some kinds only says nothing of the others.
        if case .after(let sequence) = opening.point, opening.kinds == nil { cursor = sequence }
        push.submit([.streamOpened(opening.key, resuming: cursor)])
        return true
    }

    /// The stream is over. May be called more than once.
    func close(_ id: StreamID) {
        loop.assertInEventLoop()
        guard isOpen(id), let detail = details[Int(id.slot)] else { return }
        let told = sessions[Int(id.slot)].watermark
        note(id, isStalled: false)
        metrics.streamSeconds.record(Double(now - detail.openedAt) / 1000)
        sessions[Int(id.slot)] = Session()
        details[Int(id.slot)] = nil
        shard.close(id)
        if detail.isNoted { push?.submit([.streamEnded(detail.key)]) }
        registry.releaseStream(detail.key, on: self, toldUpTo: told, kinds: detail.kinds)
        registry.noteSeen(detail.key)
        openStreamCount.wrappingSubtract(1, ordering: .relaxed)
    }

    /// Ends a stream in order, after `farewell` if there is one.
    func end(_ id: StreamID, _ farewell: Frame? = nil) {
        guard isOpen(id) else { return }
        let session = sessions[Int(id.slot)]
        if let stream = session.stream {
            let last = (farewell?.chunk ?? []) + ChunkedCoding.last
            last.withUnsafeBytes { connections.end(stream, farewell: $0) }
            close(id)
        } else {
            // It tells when it is gone.
            session.sink?.end(farewell?.blocks)
        }
    }

    /// The stream takes bytes again.
    func drained(_ id: StreamID) {
        loop.assertInEventLoop()
        guard isOpen(id), details[Int(id.slot)]?.stalledSince != nil else { return }
        writing.recovered.append(id)
        // A sink may drain while frames are being sent; the catch-up then waits for their end.
        if !writing.isPumping { pump() }
    }

    /// Notes that an open stream takes no bytes, or does again.
    func note(_ id: StreamID, isStalled: Bool) {
        let slot = Int(id.slot)
        guard let detail = details[slot], isStalled != (detail.stalledSince != nil) else { return }
        details[slot]?.stalledSince = isStalled ? now : nil
        lagging += isStalled ? 1 : -1
        if isStalled { metrics.streamsLagged.increment() }
    }

    /// Says how the shard stands.
    func publishFigures() {
        let figures = ShardFigures(
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
        guard let id = sessions[Int(UInt32(truncatingIfNeeded: name))].id,
            Self.name(of: id) == name
        else { return nil }
        return id
    }

    // MARK: The end

    /// Ends every stream, telling each reader to come back after a time of its own.
    ///
    /// - Returns: Succeeds when every connection is closed; bounded by the time a peer is given to
    ///   end its side.
    func drain() -> EventLoopFuture<Void> {
        loop.assertInEventLoop()
        isDraining = true
        stopClockwork()
        for session in sessions {
            guard let id = session.id else { continue }
            let retry = Int.random(in: settings.drainRetryMilliseconds)
            end(id, Frame(EventStreamEncoder.retry(milliseconds: retry)))
        }
        return connections.emptied()
    }

    /// Lets go of everything; the loop is about to stop.
    func stop() {
        loop.assertInEventLoop()
        isDraining = true
        stopClockwork()
        connections.stop()
    }
}

/// Bounds of held-open streams.
package struct StreamSettings: Sendable, Equatable {
    /// A stream that takes no bytes for so long is closed, in milliseconds; it resumes from its
    /// cursor at no loss.
    package var stallMilliseconds: Int64 = 30_000
    /// Reconnection time told to every reader at the start, in milliseconds.
    package var retryMilliseconds = 2_000
    /// Reconnection times told when the gateway stops, so that not everybody returns at once.
    package var drainRetryMilliseconds = 500...5_000

    /// The defaults.
    package init() {}
}
