import DequeModule
import GatewayCore

/// The push targets that wait, and the places of pushes to webhooks. Apps take turns, then an app's
/// hosts. A slow host uses up its own places only, at most a quarter of all.
struct PushQueue: Sendable {
    /// The pushes of an app to a webhook's host and port, or to APNs (`nil`).
    struct Route: Hashable {
        let app: String
        let host: String?
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
    private var turnsAtAPNs = Self.noTurns

    /// The number of all places; APNs has at least as many pushes in flight.
    private var all: Int { min(terms.webhooksMax, max(1, terms.underWayMax / 2)) }

    /// Returns whether there is a place. For a person, a host's whole share may be used.
    func hasRoom(_ route: Route, isManual: Bool = false) -> Bool {
        guard route.host != nil else { return true }
        let (line, share) = (lines[route] ?? Line(), max(1, all / 4))
        let most = line.isMultiplexed || isManual ? share : min(share, terms.webhooksPerHost)
        return underWay < all && line.underWay < most
    }

    /// Makes a slot wait for its turn.
    mutating func wait(_ slot: Int, for route: Route) {
        guard lines[route, default: Line()].waiting.insert(slot).inserted else { return }
        lines[route]?.slots.append(slot)
        settle(route)
    }

    /// Returns the slot whose turn it is; `nil` when no place is left for those that wait.
    mutating func next() -> Int? {
        while let turn = (underWay < all ? turns.popFirst() : nil) ?? turnsAtAPNs.popFirst() {
            let route = turn.element
            lines[route]?.hasTurn = false
            guard hasRoom(route), let slot = lines[route]?.slots.popFirst() else { continue }
            lines[route]?.waiting.remove(slot)
            settle(route)
            return slot
        }
        return nil
    }

    mutating func began(_ route: Route) {
        guard route.host != nil else { return }
        underWay += 1
        lines[route, default: Line()].underWay += 1
    }

    mutating func ended(_ route: Route, _ result: PushResult? = nil) {
        guard route.host != nil else { return }
        underWay -= 1
        lines[route]?.underWay -= 1
        if case .webhook(let response?)? = result {
            lines[route]?.isMultiplexed = response.isMultiplexed
        }
        settle(route)
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
        } else {
            _ = turns.append(route, for: route.app, cost: 1, isShareBound: false)
        }
    }
}
