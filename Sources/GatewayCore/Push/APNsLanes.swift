import DequeModule

/// Which connection to APNs a push goes by, and when: the decisions of one pool, which is to say of
/// one team, key and environment.
///
/// A lane is one connection, from its opening to its end; it is never opened again. A push opens it
/// and goes alone, and with provider tokens others go alone after it until one was taken. A lane on
/// which something went wrong is retired: nothing goes by it any more, and it is closed when what is
/// under way has ended.
package struct APNsLanes: Sendable {
    /// What a pool allows itself.
    package struct Terms: Sendable, Hashable {
        /// Connections that may be used at once. Another is opened when all are full.
        package let lanesMax: Int
        /// Requests under way at once by one connection.
        package let windowMax: Int
        /// Whether requests carry provider tokens; if not, the connection has a certificate.
        package let usesTokens: Bool
        /// The longest a push waits until a connection may be opened, in milliseconds. When it
        /// would be longer the push is refused instead.
        package let patience: Int64
        /// Pushes that wait at once.
        package let waitingMax: Int

        /// Terms; values out of range count as the nearest one in it.
        package init(
            lanesMax: Int = 4, windowMax: Int = 500, usesTokens: Bool = true,
            patience: Int64 = 5_000, waitingMax: Int = 100_000
        ) {
            self.lanesMax = max(1, lanesMax)
            self.windowMax = max(1, windowMax)
            self.usesTokens = usesTokens
            self.patience = max(0, patience)
            self.waitingMax = max(1, waitingMax)
        }
    }

    /// What to do.
    package enum Step: Sendable, Hashable {
        /// Send a push by a lane, and open the connection of the lane for it or not.
        case send(push: UInt64, lane: UInt64, opens: Bool)
        /// Give a push up for now: no connection may be opened for a while.
        case refuse(push: UInt64)
        /// Close the connection of a lane.
        case close(lane: UInt64)
        /// Nothing before that moment of the caller's monotonic milliseconds, or before something
        /// happens.
        case wait(until: Int64)
    }

    /// What became of a push on its lane.
    package enum Ending: Sendable, Hashable {
        /// APNs took it.
        case taken
        /// APNs answered something else.
        case answered
        /// There was no answer.
        case failed
        /// It was not sent: there is no connection.
        case unsent
    }

    private struct Lane {
        /// A push is under way that opens the connection.
        var isOpening = true
        var isConnected = false
        /// Whether a push was taken.
        var hasSucceeded = false
        var isRetired = false
        var underWay = 0
        /// How many streams the peer allows; `nil` while it has not said so.
        var streamsMax: Int?
        /// When something was last sent by it.
        var sentAt = Int64.min
        /// The provider token it was last used with, by number, and since when.
        var token: UInt64?
        var tokenSince = Int64.min
    }

    /// How long a push may be under way on a connection that has to prove itself, and how long a
    /// peer may allow no requests at all, in milliseconds; then the lane is retired, so that it does
    /// not hold up all others.
    package static let provingMax: Int64 = 10_000

    private let terms: Terms
    private var lanes: [UInt64: Lane] = [:]
    private var lastLane: UInt64 = 0
    private var waiting = Deque<UInt64>()
    private var pace = APNsConnectionPace()

    /// No connection, and nothing to send.
    package init(_ terms: Terms) {
        self.terms = terms
    }

    /// Pushes that wait to be sent.
    package var waitingCount: Int { waiting.count }
    /// Connections that are not retired.
    package var usableCount: Int { lanes.values.count { !$0.isRetired } }
    /// Pushes under way.
    package var underWayCount: Int { lanes.values.reduce(0) { $0 + $1.underWay } }

    // MARK: What happens

    /// A push is to be sent.
    ///
    /// - Returns: Whether it may wait; if not, nothing changes.
    package mutating func add(_ push: UInt64) -> Bool {
        guard waiting.count < terms.waitingMax else { return false }
        waiting.append(push)
        return true
    }

    /// A push is to be sent again, before all others.
    package mutating func addAgain(_ push: UInt64) {
        waiting.prepend(push)
    }

    /// Nothing that waits is to be sent.
    ///
    /// - Returns: What waited.
    package mutating func removeWaiting() -> [UInt64] {
        defer { waiting.removeAll() }
        return Array(waiting)
    }

    /// The connection of a lane is open.
    package mutating func connected(_ lane: UInt64) {
        lanes[lane]?.isConnected = true
    }

    /// The peer of a lane allows so many requests at once from now on
    /// (`SETTINGS_MAX_CONCURRENT_STREAMS`).
    package mutating func allowed(_ streams: Int, on lane: UInt64) {
        lanes[lane]?.streamsMax = streams
    }

    /// Nothing goes by a lane any more.
    package mutating func retire(_ lane: UInt64) {
        lanes[lane]?.isRetired = true
    }

    /// A push on a lane has ended.
    package mutating func ended(on number: UInt64, _ ending: Ending) {
        guard var lane = lanes[number] else { return }
        lane.underWay -= 1
        lane.isOpening = false
        switch ending {
        case .taken, .answered:
            lane.isConnected = true
            if ending == .taken { lane.hasSucceeded = true }
            // What an older connection says is no reason to try new ones more often.
            if number == lastLane { pace.answered() }
        case .failed:
            if !lane.isConnected { lane.isRetired = true }
        case .unsent:
            lane.isRetired = true
        }
        lanes[number] = lane
    }

    // MARK: What to do

    /// What to do next; `nil` for nothing until something happens. To be asked again until then.
    ///
    /// - Parameter token: The number of the provider token that pushes are sent with.
    package mutating func next(now: Int64, random: UInt64, token: UInt64?) -> Step? {
        if !waiting.isEmpty {
            retireForeign(token, now: now)
            retireDoubtful(now: now)
        }
        // Lanes are few; of those that are equally full the oldest.
        var free: (number: UInt64, underWay: Int)?
        var proving: Int64?
        var usable = 0
        for (number, lane) in lanes {
            guard !lane.isRetired else {
                guard lane.underWay == 0 else { continue }
                lanes[number] = nil
                return .close(lane: number)
            }
            usable += 1
            if lane.isConnected, lane.underWay < window(of: lane),
                free.map({ (lane.underWay, number) < ($0.underWay, $0.number) }) ?? true
            {
                free = (number, lane.underWay)
            }
            if isProving(lane) || isClosedToAll(lane) { proving = lane.sentAt }
        }
        guard let push = waiting.first else { return nil }
        if let lane = free?.number {
            waiting.removeFirst()
            send(on: lane, token, now: now)
            return .send(push: push, lane: lane, opens: false)
        }
        // One connection at a time has to prove itself.
        if let proving { return .wait(until: proving.later(by: Self.provingMax)) }
        guard usable < terms.lanesMax else { return nil }
        guard pace.open(now: now, random: random) else {
            guard now.later(by: terms.patience) < pace.nextOpening else {
                return .wait(until: pace.nextOpening)
            }
            waiting.removeFirst()
            return .refuse(push: push)
        }
        waiting.removeFirst()
        lastLane += 1
        lanes[lastLane] = Lane()
        send(on: lastLane, token, now: now)
        return .send(push: push, lane: lastLane, opens: true)
    }

    private mutating func send(on lane: UInt64, _ token: UInt64?, now: Int64) {
        lanes[lane]?.underWay += 1
        lanes[lane]?.sentAt = now
        guard lanes[lane]?.token != token else { return }
        lanes[lane]?.token = token
        lanes[lane]?.tokenSince = now
    }

    /// APNs takes a new provider token on a connection only when the one before was used for a
    /// while; a connection that has not used it so long makes room for another.
    private mutating func retireForeign(_ token: UInt64?, now: Int64) {
        guard terms.usesTokens else { return }
        for (number, lane) in lanes where !lane.isRetired && lane.token != token {
            if now.elapsed(since: lane.tokenSince) < ProviderTokenAge.usedMin { retire(number) }
        }
    }

    private mutating func retireDoubtful(now: Int64) {
        for (number, lane) in lanes where !lane.isRetired {
            guard isProving(lane) && lane.underWay > 0 || isClosedToAll(lane) else { continue }
            if now >= lane.sentAt.later(by: Self.provingMax) { retire(number) }
        }
    }

    private func isProving(_ lane: Lane) -> Bool {
        lane.isOpening || !(terms.usesTokens ? lane.hasSucceeded : lane.isConnected)
    }

    /// Whether nothing is under way, and the peer allows nothing to be.
    private func isClosedToAll(_ lane: Lane) -> Bool {
        lane.underWay == 0 && window(of: lane) == 0
    }

    private func window(of lane: Lane) -> Int {
        APNsConnectionPace.requestsMax(
            announced: lane.streamsMax,
            hasSucceeded: terms.usesTokens ? lane.hasSucceeded : lane.isConnected,
            limit: terms.windowMax)
    }
}
