import DequeModule

/// The waiting push targets, and the places for webhook pushes and content questions in flight.
/// Apps take turns, and within an app its hosts or sources. A host uses at most a quarter of the
/// webhook places, so a slow host delays only itself. Hosts that clients chose, of Web Push, use at
/// most half of them. Each app has its own places for questions.
struct PushQueue: Sendable {
    /// The pushes of an app to a host and port, or to APNs (`nil`).
    struct Route: Hashable, Comparable {
        let app: String
        let host: String?
        /// The type of the Live Activities whose content is asked for; `nil` for other pushes, and
        /// once it is there.
        var source: String?
        /// Whether a client chose the host, which may be that of a webhook, too.
        var isWebPush = false

        static func < (left: Route, right: Route) -> Bool {
            (left.app, left.host ?? "", left.source ?? "", left.isWebPush ? 1 : 0)
                < (right.app, right.host ?? "", right.source ?? "", right.isWebPush ? 1 : 0)
        }
    }

    /// The questions for content of an app.
    private struct Questions {
        var underWay = 0
        /// The sources whose turn it is once one of them has ended, in order.
        var blocked = Deque<Route>()
    }

    private struct Line {
        var underWay = 0
        /// Whether its last answer came over HTTP/2, which needs no connection for each request.
        var isMultiplexed = false
        var slots = Deque<Int>()
        var waiting: Set<Int> = []
        var hasTurn = false
    }

    private static let noTurns = FairQueue<String, Route>(
        limits: .init(count: .max, cost: .max, quantum: 1))

    var terms = PushScheduler.Terms()
    private var underWay = 0
    private var lines: [Route: Line] = [:]
    private var turns = Self.noTurns
    private var webPushUnderWay = 0
    private var turnsOfWebPush = Self.noTurns
    /// The turns of pushes to APNs, and of questions for content.
    private var turnsAtAPNs = Self.noTurns
    private var questions: [String: Questions] = [:]
    /// The number of questions for content in flight.
    private(set) var questionsUnderWay = 0
    /// The sources that are not asked at the moment.
    private(set) var paused: Set<Route> = []

    /// The number of all places; APNs has at least as many pushes in flight.
    private var all: Int { min(terms.webhooksMax, max(1, terms.underWayMax / 2)) }

    private var webPushHasRoom: Bool { underWay < all && webPushUnderWay < max(1, all / 2) }

    /// Returns whether there is a place. For a person, a host's whole share may be used.
    func hasRoom(_ route: Route, isManual: Bool = false) -> Bool {
        if route.source != nil {
            return hasPlace(route.app) && (isManual || !paused.contains(route))
        }
        guard route.host != nil else { return true }
        if route.isWebPush, !webPushHasRoom { return false }
        let (line, share) = (lines[route] ?? Line(), max(1, all / 4))
        let most = line.isMultiplexed || isManual ? share : min(share, terms.webhooksPerHost)
        return underWay < all && line.underWay < most
    }

    private func hasPlace(_ app: String) -> Bool {
        questions[app]?.underWay ?? 0 < PushScheduler.questionsPerApp
    }

    /// Makes a slot wait for its turn.
    mutating func wait(_ slot: Int, for route: Route) {
        guard lines[route, default: Line()].waiting.insert(slot).inserted else { return }
        lines[route]?.slots.append(slot)
        settle(route)
    }

    /// Returns the slot whose turn it is; `nil` when no place is left for those that wait.
    mutating func next() -> Int? {
        while let turn = nextTurn() {
            let route = turn.element
            if route.source != nil {
                guard hasPlace(route.app) else {
                    // It keeps its turn.
                    questions[route.app]?.blocked.append(route)
                    continue
                }
                // This one may leave the place to the next.
                wake(route.app)
            }
            lines[route]?.hasTurn = false
            guard hasRoom(route), let slot = lines[route]?.slots.popFirst() else { continue }
            lines[route]?.waiting.remove(slot)
            settle(route)
            return slot
        }
        return nil
    }

    private mutating func nextTurn() -> FairQueue<String, Route>.Entry? {
        // Web Push comes first, but leaves the other half.
        if webPushHasRoom, let turn = turnsOfWebPush.popFirst() { return turn }
        if underWay < all, let turn = turns.popFirst() { return turn }
        return turnsAtAPNs.popFirst()
    }

    mutating func began(_ route: Route) {
        if route.source != nil {
            questionsUnderWay += 1
            questions[route.app, default: Questions()].underWay += 1
        }
        guard route.host != nil else { return }
        underWay += 1
        webPushUnderWay += route.isWebPush ? 1 : 0
        lines[route, default: Line()].underWay += 1
    }

    mutating func ended(_ route: Route, _ result: PushResult? = nil) {
        if route.source != nil {
            questionsUnderWay -= 1
            questions[route.app]?.underWay -= 1
            return wake(route.app)
        }
        guard route.host != nil else { return }
        underWay -= 1
        webPushUnderWay -= route.isWebPush ? 1 : 0
        lines[route]?.underWay -= 1
        switch result {
        case .webhook(let response?)?: lines[route]?.isMultiplexed = response.isMultiplexed
        case .service(_, _, let isMultiplexed?)?: lines[route]?.isMultiplexed = isMultiplexed
        case .webhook?, .service?, .content?, .notSent?, nil: break
        }
        settle(route)
    }

    /// Gives the next of an app's sources that have no place its turn, one at a time.
    private mutating func wake(_ app: String) {
        let next = questions[app]?.blocked.popFirst()
        if let known = questions[app], known.underWay == 0, known.blocked.isEmpty {
            questions[app] = nil
        }
        if let next { _ = turnsAtAPNs.append(next, for: app, cost: 1, isShareBound: false) }
    }

    /// Asks a source no more until ``resume(_:)``.
    mutating func pause(_ route: Route) { paused.insert(route) }

    mutating func resume(_ route: Route) {
        if paused.remove(route) != nil { settle(route) }
    }

    /// Gives a route a turn, or forgets it. Without a place it loses the turn until a push ends.
    private mutating func settle(_ route: Route) {
        guard let line = lines[route], !line.hasTurn else { return }
        guard !line.slots.isEmpty else {
            if line.underWay == 0 { lines[route] = nil }
            return
        }
        lines[route]?.hasTurn = true
        if route.host == nil {
            _ = turnsAtAPNs.append(route, for: route.app, cost: 1, isShareBound: false)
        } else if route.isWebPush {
            _ = turnsOfWebPush.append(route, for: route.app, cost: 1, isShareBound: false)
        } else {
            _ = turns.append(route, for: route.app, cost: 1, isShareBound: false)
        }
    }
}
