import DequeModule

/// Assigns pushes to the connections to APNs of one pool, that is of one team, key and environment.
///
/// A lane is a single connection from its opening to its end; it is never reopened. Its first push
/// opens it and is sent alone. With provider tokens, pushes are sent one at a time until one was
/// accepted. After a failure a lane is retired: nothing more is sent on it, and it is closed when
/// its pushes in flight have ended.
package struct ConnectionScheduler: Sendable {
    /// The limits of a pool.
    package struct Terms: Sendable, Hashable {
        /// The maximum number of usable connections. Another is opened when all are full.
        package let lanesMax: Int
        /// The maximum number of requests in flight on one connection.
        package let windowMax: Int
        /// Whether requests carry provider tokens; if not, the connection has a client certificate.
        package let usesTokens: Bool
        /// The longest time that a push waits for a connection to be opened, ms. It is rejected if
        /// it would wait longer.
        package let patience: Int64
        /// The maximum number of waiting pushes.
        package let waitingMax: Int

        /// Creates limits; values out of range are clamped.
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

    /// An action for the caller to perform.
    package enum Step: Sendable, Hashable {
        /// Send a push on a lane, whose connection has to be opened first if `opens` is true.
        case send(push: UInt64, lane: UInt64, opens: Bool)
        /// Reject a push for now: no connection may be opened for a while.
        case refuse(push: UInt64)
        case close(lane: UInt64)
        /// Do nothing before the next event, or this time on the caller's monotonic clock, ms.
        case wait(until: Int64)
    }

    private struct Lane {
        /// Whether a push that opens the connection is in flight.
        var isOpening = true
        var isConnected = false
        /// Whether a push was accepted.
        var hasSucceeded = false
        var isRetired = false
        var underWay = 0
        /// The number of streams that the peer allows; `nil` until it announces one.
        var streamsMax: Int?
        /// The time of the last request on the lane.
        var sentAt = Int64.min
        /// The number of the provider token last used on the lane.
        var token: UInt64?
        var tokenSince = Int64.min
    }

    /// The time, ms, after which a lane is retired if a push on its unproven connection is still in
    /// flight, or if its peer still allows no requests. While it is unproven, no other connection is opened.
    package static let provingMax: Int64 = 10_000

    private let terms: Terms
    private var lanes: [UInt64: Lane] = [:]
    private var lastLane: UInt64 = 0
    private var waiting = Deque<UInt64>()
    private var pace = APNsConnectionPace()

    package init(_ terms: Terms) {
        self.terms = terms
    }

    package var waitingCount: Int { waiting.count }
    /// The number of connections that are not retired.
    package var usableCount: Int { lanes.values.count { !$0.isRetired } }
    /// The number of pushes in flight.
    package var underWayCount: Int { lanes.values.reduce(0) { $0 + $1.underWay } }

    // MARK: Events

    /// Adds a push to send.
    ///
    /// - Returns: Whether it may wait; if not, nothing changes.
    package mutating func add(_ push: UInt64) -> Bool {
        guard waiting.count < terms.waitingMax else { return false }
        waiting.append(push)
        return true
    }

    /// Adds a push to be sent again, before all others.
    package mutating func addAgain(_ push: UInt64) {
        waiting.prepend(push)
    }

    /// Removes all waiting pushes.
    ///
    /// - Returns: The removed pushes.
    package mutating func removeWaiting() -> [UInt64] {
        defer { waiting.removeAll() }
        return Array(waiting)
    }

    /// Records that the connection of a lane is open.
    package mutating func connected(_ lane: UInt64) {
        lanes[lane]?.isConnected = true
    }

    /// Records the number of concurrent requests that the peer of a lane allows from now on
    /// (`SETTINGS_MAX_CONCURRENT_STREAMS`).
    package mutating func allowed(_ streams: Int, on lane: UInt64) {
        lanes[lane]?.streamsMax = streams
    }

    /// Retires a lane: nothing more is sent on it.
    package mutating func retire(_ lane: UInt64) {
        lanes[lane]?.isRetired = true
    }

    /// Records the end of a push on a lane; without an outcome, no connection was made to send it.
    package mutating func ended(on number: UInt64, _ outcome: APNsOutcome?) {
        guard var lane = lanes[number] else { return }
        lane.underWay -= 1
        lane.isOpening = false
        switch outcome {
        case .answered(let status, _, _):
            lane.isConnected = true
            if (200..<300).contains(status) { lane.hasSucceeded = true }
            // A response on an older connection is no reason to open new ones more often.
            if number == lastLane { pace.answered() }
        case .failed:
            if !lane.isConnected { lane.isRetired = true }
        case nil:
            lane.isRetired = true
        }
        lanes[number] = lane
    }

    // MARK: Decisions

    /// Returns the next action; `nil` if there is none before the next event. Call it until `nil`.
    ///
    /// - Parameter token: The number of the provider token that pushes are sent with.
    package mutating func next(now: Int64, random: UInt64, token: UInt64?) -> Step? {
        if !waiting.isEmpty {
            retireForeign(token, now: now)
            retireDoubtful(now: now)
        }
        // There are only a few lanes; of equally full ones the oldest is used.
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
        // Only one connection at a time may be unproven.
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

    /// Retires lanes that cannot switch to the provider token. APNs accepts a new token on a
    /// connection only if the previous one was used for a while.
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

    /// Returns whether nothing is in flight on the lane, and the peer allows no request.
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
