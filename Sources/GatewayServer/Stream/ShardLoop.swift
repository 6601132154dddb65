import GatewayCore
import GatewaySigning
import HeapModule
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
    /// Deadlines of streams that are gone, beyond as many as are open, before they are swept.
    private static let deadlinesSlack = 1_024
    /// Seconds between two heartbeats of an idle stream.
    static let heartbeatSeconds = 15

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

    private struct Session {
        let id: StreamID
        let sink: any EventSink
        let key: ClientKey
        /// The id last given to the sink.
        var watermark: UInt64
        /// Since when nothing fits, in monotonic milliseconds.
        var stalledSince: Int64?
    }

    private struct Deadline: Comparable {
        let at: Int64
        let id: StreamID
        static func < (left: Deadline, right: Deadline) -> Bool { left.at < right.at }
    }

    let loop: any EventLoop
    private let settings: StreamSettings
    private let press: NotificationPress
    private let registry: Registry
    private let metrics: GatewayMetrics
    private let cursors: CursorDesk
    private let logger: Logger
    private let inbox = Mutex<(messages: [Message], isScheduled: Bool)>(([], false))
    private let openStreamCount = Atomic<Int>(0)
    private let reachedPosition = Atomic<UInt64>(0)

    private var shard: Shard
    private var sessions: [Session?] = []
    private var framesWithID: [FramedBytes?] = []
    private var framesWithoutID: [FramedBytes?] = []
    private var joining: [FramedBytes] = []
    private var isPumping = false
    private var recovered: [StreamID] = []
    private var waiting: [(position: UInt64, resume: () -> Void)] = []
    private var wheel: [[StreamID]] = Array(repeating: [], count: heartbeatSeconds)
    private var wheelPlace = 0
    private var deadlines = Heap<Deadline>()
    private var windowTimer: (at: Int64, task: Scheduled<Void>)?
    private var ticking: RepeatedTask?
    private var isDraining = false

    init(
        loop: any EventLoop, shard: Shard, settings: StreamSettings, press: NotificationPress,
        registry: Registry, metrics: GatewayMetrics, cursors: CursorDesk, logger: Logger
    ) {
        self.loop = loop
        self.shard = shard
        self.settings = settings
        self.press = press
        self.registry = registry
        self.metrics = metrics
        self.cursors = cursors
        self.logger = logger
        reachedPosition.store(shard.position, ordering: .relaxed)
    }

    /// Starts the loop's one timer.
    func start() {
        loop.execute { [self] in
            ticking = loop.scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) {
                [weak self] _ in self?.tick()
            }
        }
    }

    // MARK: From other threads

    /// Streams open now.
    var openStreams: Int { openStreamCount.load(ordering: .relaxed) }

    /// The last log entry applied.
    var position: UInt64 { reachedPosition.load(ordering: .relaxed) }

    /// Hands messages to the loop, in order. Called by the log's writer only.
    func submit(_ messages: [Message]) {
        let mustSchedule = inbox.withLock { inbox in
            inbox.messages.append(contentsOf: messages)
            defer { inbox.isScheduled = true }
            return !inbox.isScheduled
        }
        if mustSchedule { loop.execute { self.takeMessages() } }
    }

    // MARK: On the loop

    /// Monotonic milliseconds.
    private var now: Int64 { Int64(NIODeadline.now().uptimeNanoseconds / 1_000_000) }

    private func takeMessages() {
        let messages = inbox.withLock { inbox in
            defer { inbox = ([], false) }
            return inbox.messages
        }
        let now = now
        for message in messages {
            switch message {
            case .entry(let entry): shard.apply(entry, now: now)
            case .registered(let record, let app, let taken):
                shard.registered(record, app: app)
                taken(shard.position)
            case .confirmed(let record, let app, let taken):
                shard.confirmed(record, app: app)
                taken(shard.position)
            case .removed(let key): shard.removed(client: key.client, app: key.app)
            }
        }
        reachedPosition.store(shard.position, ordering: .relaxed)
        pump()
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

    /// Opens a stream that was admitted by the registry. The sink gets the catch-up, or else the
    /// cursor the stream stands at.
    func open(
        _ opening: Opening, sink: any EventSink, isHeartbeatWanted: Bool = true
    ) -> StreamID? {
        loop.assertInEventLoop()
        guard !isDraining,
            let id = shard.open(
                opening.record, app: opening.key.app, since: opening.point, kinds: opening.kinds,
                vouched: opening.vouched)
        else { return nil }
        while sessions.count <= Int(id.slot) { sessions.append(nil) }
        let watermark: UInt64 = if case .after(let sequence) = opening.point { sequence } else { 0 }
        sessions[Int(id.slot)] = Session(
            id: id, sink: sink, key: opening.key, watermark: watermark, stalledSince: nil)
        openStreamCount.wrappingAdd(1, ordering: .relaxed)
        metrics.streamsOpened.increment()
        if isHeartbeatWanted { wheel[wheelPlace].append(id) }
        let life = max(0, min(opening.expires - cursors.wallSeconds(), 365 * 24 * 3600))
        deadlines.insert(Deadline(at: now + life * 1000, id: id))
        if !shard.output.isEmpty {
            pump()
        } else if isHeartbeatWanted {
            sendHeartbeat(id)
        }
        return id
    }

    /// The stream's connection is gone. May be called more than once.
    func close(_ id: StreamID) {
        loop.assertInEventLoop()
        guard let session = sessions[Int(id.slot)], session.id == id else { return }
        sessions[Int(id.slot)] = nil
        shard.close(id)
        registry.releaseStream(session.key)
        registry.noteSeen(session.key)
        openStreamCount.wrappingSubtract(1, ordering: .relaxed)
    }

    /// The stream takes bytes again.
    func drained(_ id: StreamID) {
        loop.assertInEventLoop()
        guard let session = sessions[Int(id.slot)], session.id == id, session.stalledSince != nil
        else { return }
        recovered.append(id)
        // A sink may drain while frames are being sent; the catch-up then waits for their end.
        if !isPumping { pump() }
    }

    /// Ends every stream, telling each reader to come back after a time of its own.
    func drain() {
        loop.assertInEventLoop()
        isDraining = true
        ticking?.cancel()
        windowTimer?.task.cancel()
        for session in sessions {
            guard let session else { continue }
            let retry = Int.random(in: settings.drainRetryMilliseconds)
            session.sink.end(FramedBytes(EventStreamEncoder.retry(milliseconds: retry)))
        }
    }

    // MARK: Writing

    /// Signs what the shard wants said and writes it, each stream once.
    private func pump() {
        guard !isPumping else { return }
        isPumping = true
        repeat {
            for id in recovered where isOpen(id) {
                sessions[Int(id.slot)]?.stalledSince = nil
                shard.recovered(id)
            }
            recovered.removeAll(keepingCapacity: true)
            write()
        } while !recovered.isEmpty
        isPumping = false
    }

    private func write() {
        let frameCount = shard.output.frames.count
        framesWithID.removeAll(keepingCapacity: true)
        framesWithoutID.removeAll(keepingCapacity: true)
        framesWithID.append(contentsOf: repeatElement(nil, count: frameCount))
        framesWithoutID.append(contentsOf: repeatElement(nil, count: frameCount))
        var delivered: UInt64 = 0
        var place = 0
        while place < shard.output.touched.count {
            let (id, first) = shard.output.touched[place]
            place += 1
            delivered += write(id, first: Int(first))
        }
        if delivered > 0 {
            metrics.deliveries.increment(by: delivered)
            observeFreshness()
        }
        let ended = shard.output.ended
        shard.clearOutput()
        for id in ended where sessions[Int(id.slot)]?.id == id {
            sessions[Int(id.slot)]?.sink.end(nil)
        }
    }

    /// Writes a stream's frames of this turn together; returns how many they were.
    private func write(_ id: StreamID, first: Int) -> UInt64 {
        guard let session = sessions[Int(id.slot)], session.id == id else { return 0 }
        joining.removeAll(keepingCapacity: true)
        var watermark = session.watermark
        var place = first
        while place >= 0 {
            let delivery = shard.output.deliveries[place]
            guard let frame = frame(Int(delivery.frame), carriesID: delivery.carriesID) else {
                // Unsigned, it cannot be sent, and its id must not be: the reader comes back.
                session.sink.end(nil)
                return 0
            }
            joining.append(frame)
            if delivery.carriesID {
                watermark = max(watermark, shard.output.frames[Int(delivery.frame)].watermark)
            }
            place = Int(delivery.next)
        }
        let count = UInt64(joining.count)
        let bytes = joining.count == 1 ? joining[0] : FramedBytes(joining: joining)
        send(bytes, to: id, watermark: watermark)
        return count
    }

    private func send(_ bytes: FramedBytes, to id: StreamID, watermark: UInt64) {
        guard let session = sessions[Int(id.slot)] else { return }
        switch session.sink.send(bytes) {
        case .sent:
            sessions[Int(id.slot)]?.watermark = watermark
        case .full:
            // What was given is on its way; nothing more until it has left.
            sessions[Int(id.slot)]?.watermark = watermark
            sessions[Int(id.slot)]?.stalledSince = now
            metrics.streamsLagged.increment()
            shard.lagging(id, since: watermark)
        case .gone:
            shard.lagging(id, since: session.watermark)
        }
    }

    private func frame(_ index: Int, carriesID: Bool) -> FramedBytes? {
        if let known = carriesID ? framesWithID[index] : framesWithoutID[index] { return known }
        let frame = shard.output.frames[index]
        do {
            let notification = try press.notification(
                app: frame.app, content: frame.content, causeTime: frame.causeTime,
                now: cursors.wallSeconds())
            let id = carriesID ? cursors.text(frame.watermark) : nil
            let framed = FramedBytes(EventStreamEncoder.reload(id: id, notification: notification))
            if carriesID { framesWithID[index] = framed } else { framesWithoutID[index] = framed }
            return framed
        } catch {
            logger.error("a notification could not be signed", metadata: ["error": "\(error)"])
            return nil
        }
    }

    private func observeFreshness() {
        let wall = cursors.wallMilliseconds()
        for frame in shard.output.frames where frame.acceptedAt > 0 {
            metrics.freshnessSent.observe(Double(max(0, wall - frame.acceptedAt)) / 1000)
        }
    }

    // MARK: Time

    private func scheduleWindow() {
        guard let end = shard.nextWindowEnd else { return }
        if let timer = windowTimer, timer.at <= end { return }
        windowTimer?.task.cancel()
        let task = loop.scheduleTask(in: .milliseconds(max(0, end - now))) { [weak self] in
            if let self { endWindows() }
        }
        windowTimer = (end, task)
    }

    private func endWindows() {
        windowTimer = nil
        guard !isDraining else { return }
        shard.endWindows(now: now)
        pump()
        scheduleWindow()
    }

    private func tick() {
        guard !isDraining else { return }
        wheelPlace = (wheelPlace + 1) % Self.heartbeatSeconds
        let due = wheel[wheelPlace]
        wheel[wheelPlace].removeAll(keepingCapacity: true)
        let now = now
        for id in due {
            guard let session = sessions[Int(id.slot)], session.id == id else { continue }
            wheel[wheelPlace].append(id)
            if let since = session.stalledSince {
                if now - since >= settings.stallMilliseconds {
                    metrics.streamsStalled.increment()
                    session.sink.end(nil)
                    close(id)
                }
            } else {
                sendHeartbeat(id)
            }
        }
        // Tokens outlive most streams: what is kept for streams that are gone must not add up.
        if deadlines.count > 2 * openStreams + Self.deadlinesSlack {
            deadlines = Heap(deadlines.unordered.filter { isOpen($0.id) })
        }
        while let deadline = deadlines.min, deadline.at <= now {
            deadlines.removeMin()
            if isOpen(deadline.id) { sessions[Int(deadline.id.slot)]?.sink.end(nil) }
        }
    }

    private func isOpen(_ id: StreamID) -> Bool {
        sessions[Int(id.slot)]?.id == id
    }

    private func sendHeartbeat(_ id: StreamID) {
        guard let watermark = shard.heartbeat(id) else { return }
        let bytes = FramedBytes(EventStreamEncoder.heartbeat(id: cursors.text(watermark)))
        send(bytes, to: id, watermark: watermark)
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
