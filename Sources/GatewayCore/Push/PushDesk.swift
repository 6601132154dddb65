import DequeModule
import HeapModule
import WidgetModel

/// Decides which clients are pushed to, where and when: those that no stream reaches, or whose
/// streams confirm nothing.
///
/// It is a shard like those of the event loops, whose streams are the addresses of clients: what
/// concerns a client, across catalogs, operator reloads and registrations, is decided by the same
/// code. There is no queue: whether something is stale is asked when a push is due, and what it
/// says is what is stale at that moment.
///
/// Time is the caller's monotonic milliseconds. What is to be done is left in ``actions``.
package struct PushDesk: Sendable {
    /// How much is pushed.
    package struct Terms: Sendable {
        /// How often a device may be pushed to.
        package var budget = PushBudget.Terms()
        /// How a change for many devices is spread.
        package var spread = PushSpread.Terms()
        /// The least time between two pushes for the same kind, in milliseconds.
        package var interval = PushBudget.Kind.intervalDefault
        /// The same for single kinds.
        package var intervals: [String: Int64] = [:]
        /// Pushes that may be under way at the same time.
        package var underWayMax = 2_000
        /// The apps that are pushed to through APNs; `nil` for all.
        package var apnsApps: Set<String>?
        /// Whether webhooks are asked.
        package var hasWebhooks = true

        /// The defaults.
        package init() {}
    }

    /// Whether an address of an app's client can be pushed to by the configuration.
    func reaches(_ address: DeliveryAddress, of app: String) -> Bool {
        switch address {
        case .stream: false
        case .apns: terms.apnsApps.map { $0.contains(app) } ?? true
        case .webhook: terms.hasWebhooks
        }
    }

    /// Something to be done outside.
    package enum Action: Sendable {
        /// Make a push, and say what came of it.
        case push(PushOrder)
        /// Take an address out of a client's registration, if it is still there: it is dead, or
        /// another client has registered the token since.
        case drop(ClientKey, DeliveryAddress)
        /// A webhook is not asked any more.
        case disabled(ClientKey, DeliveryAddress, WebhookSchedule.Disabled)
    }

    /// A lane to be looked at.
    struct Due: Comparable {
        let at: Int64
        let stream: StreamID

        static func < (left: Due, right: Due) -> Bool { left.at < right.at }
    }

    /// A push that is under way.
    struct UnderWay {
        let client: ClientKey
        /// What of the client it speaks of.
        let sorts: [PushSort]
        let address: UInt64
        /// Up to where it speaks of everything; 0 when that is worth nothing any more.
        var position: UInt64
        let since: UInt64
        let message: WebhookSchedule.Attempt?
        /// Whether a person asked for it: how the address fares does not follow from it.
        let isManual: Bool
        /// What the budget gives back for a push that is not taken; `nil` for webhooks.
        let counted: Counted?

        struct Counted {
            let channel: PushBudget.Channel
            let before: [PushBudget.LastPush]
        }
    }

    /// An app in one of APNs' environments: what a part of the configuration is about.
    package struct Place: Sendable, Hashable {
        /// The app.
        package let app: String
        /// The environment.
        package let environment: APNsEnvironment

        /// A place.
        package init(app: String, environment: APNsEnvironment) {
            (self.app, self.environment) = (app, environment)
        }
    }

    /// What is stopped: nothing is pushed there any more until its configuration changes. A start,
    /// which reads the configuration, knows of no stops.
    struct Stop: Hashable {
        let place: Place
        /// `nil` for all topics of the app.
        let topic: String?
    }

    /// What is to be done; the caller does it and calls ``takeActions()``.
    package internal(set) var actions: [Action] = []

    var terms: Terms
    let hash: SipHash
    var spread: PushSpread
    var shard: Shard
    /// By the slots of the shard's streams.
    var lanes: [PushLane?] = []
    var clients: [ClientKey: PushClient] = [:]
    /// Who registered a push token last.
    var owners: [UInt64: ClientKey] = [:]
    var underWay: [UInt64: UnderWay] = [:]
    var changed: Set<ClientKey> = []
    var stops: Set<Stop> = []
    /// Places that were mended while pushes were under way, with the last of those pushes.
    var mended: [Place: UInt64] = [:]
    private var pushes: UInt64 = 0
    private var dues = Heap<Due>()
    private var queue = Deque<StreamID>()

    /// A desk that knows the log up to where `shard`, without streams, does.
    package init(_ shard: Shard, terms: Terms, hash: SipHash) {
        self.shard = shard
        self.shard.stopCollapsing()
        self.terms = terms
        self.hash = hash
        spread = PushSpread(terms.spread, hash: hash)
    }

    /// The last log entry applied.
    package var position: UInt64 { shard.position }

    /// How many pushes are under way.
    package var pushesUnderWay: Int { underWay.count }

    /// What is to be done, which counts as done from here on.
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
        shard.apply(entry, now: now)
        guard !shard.output.isEmpty else { return }
        // The shard's own memory is given back when the places are known.
        let reached = shard.output.touched.map(\.stream)
        shard.clearOutput()
        for stream in reached {
            let slot = Int(stream.slot)
            guard let client = lanes[slot]?.client else { continue }
            let delay = spread.delay(
                device: hash(client.client), sequence: entry.sequence, devices: reached.count,
                urgency: entry.urgency)
            lanes[slot]?.attempts.changed(
                at: shard.position, urgency: entry.urgency, delay: delay, now: now)
        }
        // Afterwards: one push may speak of several of them.
        for stream in reached { look(Int(stream.slot), now: now) }
    }

    // MARK: Time

    /// When ``advance(now:)`` is due next; `nil` when nothing waits for a moment.
    package var nextDue: Int64? { dues.min?.at }

    /// Looks at what is due.
    package mutating func advance(now: Int64) {
        while let due = dues.min, due.at <= now {
            dues.removeMin()
            let slot = Int(due.stream.slot)
            guard lanes[slot]?.stream == due.stream, lanes[slot]?.due == due.at else { continue }
            lanes[slot]?.due = nil
            look(slot, now: now)
        }
    }

    /// Does for a lane what is to be done now, and notes when it is looked at next.
    mutating func look(_ slot: Int, now: Int64) {
        // Each push leads to another step: it is under way, withheld or of no use.
        while let step = lanes[slot]?.attempts.next(now: now) {
            switch step {
            case .rest: return
            case .wait(let until): return schedule(slot, until)
            case .push(let address):
                guard underWay.count < terms.underWayMax else { return enqueue(slot) }
                push(slot, to: address, now: now)
            }
        }
    }

    /// Looks at those that waited for pushes to end.
    mutating func drainQueue(now: Int64) {
        while underWay.count < terms.underWayMax, let stream = queue.popFirst() {
            let slot = Int(stream.slot)
            guard lanes[slot]?.stream == stream else { continue }
            lanes[slot]?.isQueued = false
            look(slot, now: now)
        }
    }

    private mutating func enqueue(_ slot: Int) {
        guard let lane = lanes[slot], !lane.isQueued else { return }
        lanes[slot]?.isQueued = true
        queue.append(lane.stream)
    }

    private mutating func schedule(_ slot: Int, _ until: Int64) {
        guard let lane = lanes[slot], until < lane.due ?? .max else { return }
        lanes[slot]?.due = until
        dues.insert(Due(at: until, stream: lane.stream))
    }

    /// The number of the last push.
    var lastNumber: UInt64 { pushes }

    /// The number of the next push.
    mutating func nextNumber() -> UInt64 {
        pushes += 1
        return pushes
    }
}
