import HeapModule
import WidgetModel

/// Decides which clients get pushes, at which address and when. It pushes to clients without a
/// stream, and to clients whose streams confirm nothing.
///
/// It contains a shard like those of the event loops, with a stream for each category of a client,
/// so that the same code decides the effect of changes, catalogs, operator reloads and
/// registrations. There is no queue: staleness is checked when a push is due, and a push reports
/// what is stale then.
///
/// Times are on the caller's monotonic clock, ms. Actions for the caller are left in ``actions``.
package struct PushScheduler: Sendable {
    /// The limits of pushes.
    package struct Terms: Sendable {
        /// The budget of each device.
        package var budget = PushBudget.Terms()
        /// The limits for spreading a change for many devices.
        package var spread = PushSpread.Terms()
        /// The shortest interval between two pushes for the same kind, ms.
        package var interval = PushBudget.Kind.intervalDefault
        /// The intervals of individual kinds, ms.
        package var intervals: [String: Int64] = [:]
        /// The maximum number of pushes in flight.
        package var underWayMax = 2_000
        /// The maximum number of pushes in flight to webhooks; a host gets at most a quarter.
        package var webhooksMax = 256
        /// The maximum number of pushes in flight to a host of an app over HTTP/1.1.
        package var webhooksPerHost = 4
        /// The apps with pushes through APNs; `nil` for all.
        package var apnsApps: Set<String>?
        /// The apps with Web Push; `nil` for all.
        package var webPushApps: Set<String>?
        /// The apps with pushes through FCM; `nil` for all.
        package var fcmApps: Set<String>?
        package var hasWebhooks = true

        package init() {}
    }

    /// The maximum number of questions for content in flight of an app.
    package static let questionsPerApp = 16

    /// Returns whether the configuration allows pushes to an address of an app's client.
    func reaches(_ address: DeliveryAddress, of app: String) -> Bool {
        switch address {
        case .stream: false
        case .apns: terms.apnsApps.map { $0.contains(app) } ?? true
        case .webPush: terms.webPushApps.map { $0.contains(app) } ?? true
        case .fcm: terms.fcmApps.map { $0.contains(app) } ?? true
        case .webhook: terms.hasWebhooks
        }
    }

    /// An action for the caller to perform.
    package enum Action: Sendable {
        /// Send a push, and report its result.
        case push(DuePush)
        /// Remove an address from a client's registration, if it is still there: it is dead, or
        /// another client has registered the token since.
        case drop(ClientKey, DeliveryAddress)
        /// Read the id of a client's streams, and pass it to
        /// ``PushScheduler/received(sentUpTo:about:now:)``.
        case readSent(ClientKey)
        /// Report that a webhook was disabled.
        case disabled(ClientKey, DeliveryAddress, WebhookSchedule.Disabled)
        /// Report that the source of a type's content failed again, after it failed repeatedly.
        case sourceFailed(app: String, type: String, ContentFailure)
    }

    /// The due evaluation of a push target.
    struct Due: Comparable {
        let at: Int64
        let stream: StreamID

        static func < (left: Due, right: Due) -> Bool { left.at < right.at }
    }

    /// A push in flight.
    struct UnderWay {
        let client: ClientKey
        /// The categories that it reports.
        let sorts: [PushCategory]
        let address: UInt64
        /// The sequence up to which it reports everything; 0 once that is void.
        var position: UInt64
        let since: UInt64
        let message: WebhookSchedule.Attempt?
        var route: PushQueue.Route
        /// Whether a person requested it, so that its result does not affect the address.
        let isManual: Bool
        /// The counted push to revert if it is rejected; `nil` for webhooks.
        let counted: Counted?

        struct Counted {
            let account: PushBudget.Account
            let before: [PushBudget.LastPush]
        }
    }

    /// An app at a push service: the scope of a part of the configuration.
    package struct AppService: Sendable, Hashable {
        package let app: String
        package let service: PushService

        package init(app: String, _ service: PushService) {
            (self.app, self.service) = (app, service)
        }
    }

    /// A stopped scope: no pushes are sent there until its configuration changes. Stops are not
    /// stored, because a start reads the configuration again.
    struct Stop: Hashable {
        let place: AppService
        /// The topic; `nil` for all topics of the app.
        let topic: String?
    }

    /// The actions for the caller, who performs them and calls ``takeActions()``.
    package internal(set) var actions: [Action] = []

    package internal(set) var terms: Terms
    let hash: SipHash
    var spread: PushSpread
    var shard: Shard
    /// The push targets, by the slots of the shard's streams.
    var lanes: [PushTarget?] = []
    var clients: [ClientKey: PushClient] = [:]
    /// The open streams of clients, also of those that it does not push to yet: the kinds that each
    /// is limited to; `nil` for all.
    var streams: [ClientKey: [Set<String>?]] = [:]
    /// The least timestamp of a push, seconds since 1970: above those of a program before, which
    /// may have ended before it stored them.
    var stampMin: Int64 = 0
    /// The restored push targets that were not evaluated yet.
    var restored: [StreamID] = []
    /// The client that registered each push token last.
    var owners: [UInt64: ClientKey] = [:]
    var underWay: [UInt64: UnderWay] = [:]
    /// The clients the id of whose streams is being read, and the place that is kept for each.
    var sentRequests: [ClientKey: PushQueue.Route] = [:]
    var queue = PushQueue()
    package internal(set) var starts: RecentStarts
    /// The slots of the start categories of clients with an attribute, by app, type and attribute.
    var startHolders: [UInt64: Set<Int>] = [:]
    /// The sources of content that fail.
    var sources: [PushQueue.Route: SourceHealth] = [:]
    var changed: Set<ClientKey> = []
    var stops: Set<Stop> = []
    /// The places that were fixed while pushes were in flight, with the last of those pushes.
    var mended: [AppService: UInt64] = [:]
    /// The apps whose catalog came while pushes were in flight, with the last of those pushes.
    var declared: [String: UInt64] = [:]
    /// The earliest time at which a source may be asked again; `.max` if none waits for it.
    var nextResumption = Int64.max
    private var pushes: UInt64 = 0
    private var dues = Heap<Due>()

    /// Creates a scheduler with the log position of `shard`, which has no streams.
    ///
    /// - Parameter starts: The starts in the log up to there.
    package init(
        _ shard: Shard, terms: Terms, hash: SipHash, starts: RecentStarts = RecentStarts()
    ) {
        self.shard = shard
        self.starts = starts
        self.terms = terms
        queue.terms = terms
        self.hash = hash
        spread = PushSpread(terms.spread, hash: hash)
    }

    /// The sequence of the last applied log entry.
    package var position: UInt64 { shard.position }

    /// The number of pushes in flight, or about to be once something is read.
    package var pushesUnderWay: Int { underWay.count + sentRequests.count }

    /// Returns the actions, which then count as performed.
    package mutating func takeActions() -> [Action] {
        defer { actions = [] }
        return actions
    }

    // MARK: The log

    /// Applies the next entry of the log.
    package mutating func apply(_ entry: LogEntry, now: Int64) {
        if case .removal = entry.body {
            for key in clients.keys where key.app == entry.app { removed(key) }
        }
        starts.apply(entry)
        let last = underWay.isEmpty ? nil : lastNumber
        // After a gap nothing is known, and everything is stale.
        let known = entry.sequence == position + 1 ? shard.settled(app: entry.app) : 0
        shard.apply(entry, now: now)
        record(after: known, urgency: entry.urgency, now: now)
        switch entry.body {
        case .catalog, .removal:
            declared[entry.app] = last
            forgetSources(of: entry.app, now: now)
        case .start(let start): apply(start, entry, now: now)
        case .change, .reload, .registration: break
        }
    }

    /// Asks the sources of an app anew: others may answer now.
    private mutating func forgetSources(of app: String, now: Int64) {
        let failing = sources.keys.filter { $0.app == app }.sorted()
        guard !failing.isEmpty else { return }
        for route in failing {
            sources[route] = nil
            queue.resume(route)
        }
        drainQueue(now: now)
        for slot in lanes.indices
        where lanes[slot]?.failure != nil && lanes[slot]?.client.app == app {
            for address in lanes[slot]?.attempts.addresses ?? [] {
                lanes[slot]?.attempts.recovered(address.id)
            }
            look(slot, now: now)
        }
    }

    /// Records for the affected push targets what the shard would send to their streams.
    ///
    /// - Parameter known: The sequence up to which everything was recorded before; `nil` at the end
    ///   of collapse windows.
    private mutating func record(after known: UInt64?, urgency: Urgency, now: Int64) {
        guard !shard.output.isEmpty else { return }
        var slots: [Int] = []
        for (stream, start) in shard.output.touched {
            let slot = Int(stream.slot)
            guard let lane = lanes[slot], !lane.sort.isStart else { continue }
            let client = lane.client
            let open = lane.isPushed ? [] : streams[client] ?? []
            var (first, last, highest) = (UInt64.max, UInt64(0), Urgency.veryLow)
            var isNarrow = true
            var next = start
            while next >= 0 {
                let delivery = shard.output.deliveries[Int(next)]
                let frame = shard.output.frames[Int(delivery.frame)]
                first = min(first, max(frame.content.sequence, 1))
                last = max(last, frame.content.sequence)
                let urgency = frame.urgency ?? urgency
                if urgency.rank > highest.rank { highest = urgency }
                isNarrow = isNarrow && frame.content.isLimited(to: open)
                next = delivery.next
            }
            let delay = spread.delay(
                device: hash(client.client), sequence: last, devices: shard.output.touched.count,
                urgency: highest)
            let since = known ?? min(shard.settled(app: client.app), first - 1)
            let id = open.isEmpty ? position : streamID(of: client)
            lanes[slot]?.attempts.changed(
                at: last, after: since, urgency: highest, delay: delay, isNarrow: isNarrow,
                sentUpTo: id, now: now)
            // The stored state tells what is owed after a restart, and to the next leader.
            changed.insert(client)
            slots.append(slot)
        }
        shard.clearOutput()
        // Evaluated afterwards, because one push may report several of them.
        for slot in slots { look(slot, now: now) }
    }

    /// Returns the id that a client's streams have: everything up to it was sent.
    mutating func streamID(of key: ClientKey) -> UInt64 {
        var id = position
        for slot in clients[key]?.slots ?? [] {
            guard let stream = lanes[slot]?.stream else { continue }
            id = min(id, shard.heartbeat(stream) ?? 0)
        }
        return id
    }

    /// Replaces versions by sealed ones, which all shards of a node share.
    package mutating func adopt(_ versions: SealedVersions) { shard.adopt(versions) }

    // MARK: Time

    /// The time at which ``advance(now:)`` is due; `nil` when nothing waits for a time.
    package var nextDue: Int64? {
        let resumption = queue.paused.isEmpty ? .max : nextResumption
        let next = min(dues.min?.at ?? .max, shard.nextWindowEnd ?? .max, resumption)
        return next == .max ? nil : next
    }

    /// Ends the collapse windows that are over, and evaluates the push targets that are due.
    package mutating func advance(now: Int64) {
        shard.endWindows(now: now)
        record(after: nil, urgency: .normal, now: now)
        while let due = dues.min, due.at <= now {
            dues.removeMin()
            let slot = Int(due.stream.slot)
            guard lanes[slot]?.stream == due.stream, lanes[slot]?.due == due.at else { continue }
            lanes[slot]?.due = nil
            look(slot, now: now)
        }
        guard nextResumption <= now else { return }
        nextResumption = .max
        for route in queue.paused.sorted() {
            let until = sources[route]?.until ?? .min
            if until > now {
                nextResumption = min(nextResumption, until)
            } else {
                queue.resume(route)
            }
        }
        drainQueue(now: now)
    }

    /// Evaluates push targets of many clients. Those with something due are spread over time, like
    /// a change for as many devices.
    mutating func lookTogether(_ slots: [Int], now: Int64) {
        let soon = now.later(by: DeliveryAttempts.grace)
        let due = slots.filter { lanes[$0]?.attempts.turn(now: now)?.due ?? .max <= soon }
        for slot in due {
            guard let lane = lanes[slot] else { continue }
            let delay = spread.delay(
                device: hash(lane.client.client), sequence: position, devices: due.count,
                urgency: lane.attempts.urgency)
            lanes[slot]?.attempts.heldUntil = max(
                lane.attempts.heldUntil, now.later(by: delay))
        }
        for slot in slots { look(slot, now: now) }
    }

    /// Performs the due steps of a push target, and schedules its next evaluation.
    mutating func look(_ slot: Int, now: Int64) {
        // Each push changes the next step, because it is then in flight, withheld or discarded; so
        // this loop ends.
        while let step = lanes[slot]?.attempts.next(now: now) {
            switch step {
            case .rest: return
            case .wait(let until): return schedule(slot, until)
            case .push(let address):
                guard let lane = lanes[slot] else { return }
                let route = route(to: address, of: lane)
                guard hasRoom, queue.hasRoom(route) else { return queue.wait(slot, for: route) }
                guard knowsSent(slot, for: route) else { return }
                push(slot, to: address, on: route, now: now)
            }
        }
    }

    /// Evaluates the push targets that waited for pushes to end.
    mutating func drainQueue(now: Int64) {
        while hasRoom, let slot = queue.next() { look(slot, now: now) }
    }

    func route(to id: UInt64, of lane: PushTarget) -> PushQueue.Route {
        let address = clients[lane.client]?.addresses[id]
        return PushQueue.Route(
            app: lane.client.app, host: address?.host,
            source: address?.host == nil ? lane.activityType : nil,
            isWebPush: address?.service == .webPush)
    }

    /// Whether another push may begin. Questions for content have places of their own.
    private var hasRoom: Bool {
        underWay.count + sentRequests.count - queue.questionsUnderWay < terms.underWayMax
    }

    private mutating func schedule(_ slot: Int, _ until: Int64) {
        guard let lane = lanes[slot], until < lane.due ?? .max else { return }
        lanes[slot]?.due = until
        dues.insert(Due(at: until, stream: lane.stream))
    }

    var lastNumber: UInt64 { pushes }

    mutating func nextNumber() -> UInt64 {
        pushes += 1
        return pushes
    }
}

extension StaleSet {
    /// Returns whether streams that are limited to these kinds carry the content.
    fileprivate func isLimited(to kinds: [Set<String>?]) -> Bool {
        !all && names.allSatisfy { name in kinds.contains { $0?.contains(name.kind) ?? false } }
    }
}
