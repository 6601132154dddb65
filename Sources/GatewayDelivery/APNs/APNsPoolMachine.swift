import GatewayCore
import WidgetModel

/// The decisions of one pool of connections to APNs: which push is sent on which connection, with
/// which provider token, and what follows from each result.
///
/// It has no I/O, task, lock or clock: the caller reports what happened, and then performs the
/// actions that ``next(_:)`` returns until there are none.
struct APNsPoolMachine {
    /// A push between ``add(_:)`` and its result.
    struct Flight {
        let push: APNsPush
        /// `apns-id`.
        let id: String
        /// The connection, provider token and time of the last request.
        fileprivate(set) var connection: UInt64 = 0
        fileprivate(set) var token: ProviderTokenAge.Token?
        fileprivate var sentAt: Moment?
        /// The number of answers on that connection before the request.
        fileprivate var answersBefore = 0
        fileprivate var requests = 0
        // Attempts of this pool to help the push.
        fileprivate var failures = 0
        fileprivate var hasMinted = false
        fileprivate var hasReconnected = false
    }

    /// An action for the caller to perform.
    enum Action {
        /// Send a push on a connection, which has to be opened first if `opens` is true.
        case send(flight: UInt64, connection: UInt64, opens: Bool)
        /// Close a connection. Nothing is in flight on it.
        case close(connection: UInt64)
        /// Get a provider token other than the one refused as expired, then call
        /// ``fetched(_:_:)``.
        case fetchToken(refused: SharedProviderToken?)
        /// Report the result of a push. Its number may be used again afterwards.
        case finish(flight: UInt64, APNsPushResult)
        /// Call ``timerFired(at:)`` at this time, monotonic ms.
        case wake(at: Int64)
    }

    /// A time by the pool's clock.
    struct Moment {
        /// Monotonic milliseconds.
        let now: Int64
        /// Milliseconds since 1970.
        let wall: Int64
    }

    private enum Stop: Hashable {
        case credential
        case topic(String)
    }

    private let usesTokens: Bool
    private var scheduler: ConnectionScheduler
    /// The number of answers by connection.
    private var answers: [UInt64: Int] = [:]
    /// The pushes by number, and the numbers that are free.
    private var flights: [Flight?] = []
    private var freeFlights: [UInt64] = []
    private var age = ProviderTokenAge()
    /// The tokens of `age`, by number.
    private var tokens: [UInt64: SharedProviderToken] = [:]
    private var isFetching = false
    /// The earliest time that the caller was asked to wake the machine.
    private var timer: Int64?
    private var isDraining = false
    private var random: SplitMix64
    private var totals = APNsPoolStats()
    /// Actions to return, from `nextPending` on. The memory is reused.
    private var pending: [Action] = []
    private var nextPending = 0
    /// The reactions that stopped pushes, by their scope.
    private var stops: [Stop: APNsReaction] = [:]

    init(_ terms: ConnectionScheduler.Terms, random: SplitMix64) {
        usesTokens = terms.usesTokens
        scheduler = ConnectionScheduler(terms)
        self.random = random
    }

    /// The pool's current size and its totals.
    var figures: APNsPoolStats {
        var figures = totals
        figures.waiting = scheduler.waitingCount
        figures.underWay = scheduler.underWayCount
        figures.connections = scheduler.usableCount
        return figures
    }

    /// Whether pushes are no longer accepted, and the last one has its result.
    var isDrained: Bool { isDraining && flights.count == freeFlights.count }

    /// Returns a push without a result.
    func flight(_ number: UInt64) -> Flight? {
        number < flights.count ? flights[Int(number)] : nil
    }

    func text(of token: ProviderTokenAge.Token?) -> (number: UInt64, text: String)? {
        guard let token, let shared = tokens[token.number] else { return nil }
        return (token.number, shared.text)
    }

    // MARK: Pushes

    mutating func add(_ push: APNsPush) -> UInt64 {
        let flight = Flight(push: push, id: random.uuid())
        let number = freeFlights.popLast() ?? UInt64(flights.count)
        if Int(number) == flights.count {
            flights.append(flight)
        } else {
            flights[Int(number)] = flight
        }
        if let stop = stop(of: push) {
            finish(number, stop)
        } else if isDraining || !scheduler.add(number) {
            finish(number, Self.later)
        }
        return number
    }

    /// Ends all stops, so that pushes are sent again.
    mutating func resume() { stops.removeAll() }

    /// Accepts no more pushes, and gives up waiting ones.
    mutating func drain() {
        isDraining = true
        for number in scheduler.removeWaiting() { finish(number, Self.later) }
    }

    /// Gives up all pushes: nothing can be sent any more.
    mutating func giveUp() {
        drain()
        for number in flights.indices { finish(UInt64(number), Self.later) }
    }

    /// The reaction to a push that was given up before it was sent.
    private static let later = APNsReaction(.retry(.connection))

    private func stop(of push: APNsPush) -> APNsReaction? {
        stops[.credential] ?? stops[.topic(push.form.topic)]
    }

    private mutating func finish(
        _ number: UInt64, _ reaction: APNsReaction, _ outcome: APNsOutcome? = nil,
        uniqueID: String? = nil, now: Int64? = nil
    ) {
        guard let flight = flight(number) else { return }
        flights[Int(number)] = nil
        let result = APNsPushResult(
            reaction: reaction, outcome: outcome, id: flight.id, uniqueID: uniqueID,
            milliseconds: now.map { max(0, $0 - (flight.sentAt?.now ?? $0)) } ?? 0,
            requests: flight.requests)
        pending.append(.finish(flight: number, result))
    }

    // MARK: Actions

    /// Returns the next action; `nil` if there is none before the next event.
    mutating func next(_ moment: Moment) -> Action? {
        while true {
            if nextPending < pending.count {
                nextPending += 1
                let action = pending[nextPending - 1]
                // Not earlier: until the caller has the result, it refers to the push by its
                // number.
                if case .finish(let number, _) = action { freeFlights.append(number) }
                return action
            }
            pending.removeAll(keepingCapacity: true)
            nextPending = 0
            var token: ProviderTokenAge.Token?
            if usesTokens, scheduler.waitingCount > 0 {
                if isFetching { return nil }
                token = age.token(now: moment.now, wall: moment.wall)
                if token == nil {
                    fetchToken()
                    continue
                }
            }
            let step = scheduler.next(now: moment.now, random: random.next(), token: token?.number)
            switch step {
            case nil:
                return nil
            case .wait(let until):
                if let timer, timer <= until { return nil }
                timer = until
                return .wake(at: until)
            case .refuse(let push):
                finish(push, Self.later)
            case .close(let connection):
                answers[connection] = nil
                return .close(connection: connection)
            case .send(let number, let connection, let opens):
                sent(number, on: connection, with: token, at: moment)
                if opens { totals.opened += 1 }
                return .send(flight: number, connection: connection, opens: opens)
            }
        }
    }

    private mutating func sent(
        _ number: UInt64, on connection: UInt64, with token: ProviderTokenAge.Token?,
        at moment: Moment
    ) {
        let answers = answers[connection] ?? 0
        flights[Int(number)]?.connection = connection
        flights[Int(number)]?.token = token
        flights[Int(number)]?.sentAt = moment
        flights[Int(number)]?.answersBefore = answers
        flights[Int(number)]?.requests += 1
    }

    /// Records that the time of a ``Action/wake(at:)`` has come.
    mutating func timerFired(at time: Int64) {
        if timer == time { timer = nil }
    }

    // MARK: Connections

    /// Records that a connection is open.
    mutating func connected(_ connection: UInt64) { scheduler.connected(connection) }

    /// Records the number of concurrent requests that the peer allows.
    mutating func allowed(_ streams: Int, on connection: UInt64) {
        scheduler.allowed(streams, on: connection)
    }

    /// Sends nothing more on a connection.
    mutating func retire(_ connection: UInt64) { scheduler.retire(connection) }

    // MARK: The provider token

    private mutating func fetchToken(refused: SharedProviderToken? = nil) {
        guard !isFetching else { return }
        isFetching = true
        pending.append(.fetchToken(refused: refused))
    }

    /// Uses a requested provider token; `nil` means that there is none, so that nothing can be
    /// sent.
    mutating func fetched(_ token: SharedProviderToken?, _ moment: Moment) {
        isFetching = false
        guard let token else {
            stop(.credential, APNsReaction(.stop(.credential), alert: .credentialRefused))
            return
        }
        totals.providerTokens += 1
        let adopted = age.adopted(
            issuedAt: token.issuedAt * 1_000, now: moment.now, wall: moment.wall)
        tokens[adopted.number] = token
        // Only the current token and the one before it are ever used.
        tokens[adopted.number &- 2] = nil
    }

    // MARK: Outcomes

    /// Records that a push could not be handed to its connection.
    mutating func unsent(_ number: UInt64) {
        guard let flight = flight(number) else { return }
        scheduler.ended(on: flight.connection, nil)
        flights[Int(number)]?.requests -= 1
        if let reaction = stop(of: flight.push) ?? (isDraining ? Self.later : nil) {
            finish(number, reaction)
        } else {
            scheduler.addAgain(number)
        }
    }

    /// Records the end of a request; without an outcome it was not sent.
    mutating func ended(
        _ number: UInt64, _ outcome: APNsOutcome?, uniqueID: String?, _ moment: Moment
    ) {
        guard let outcome else { return unsent(number) }
        guard let flight = flight(number) else { return }
        scheduler.ended(on: flight.connection, outcome)
        if case .answered = outcome { answers[flight.connection, default: 0] += 1 }
        var reaction = APNsReaction(to: outcome, of: attempt(flight))
        if reaction.connection == .replace { scheduler.retire(flight.connection) }
        if reaction.providerToken == .useOlder, let token = flight.token {
            age.refusedAsTooSoon(token)
        }
        if reaction.providerToken == .mint, !replaceToken(of: flight, moment) {
            reaction = APNsReaction(.stop(.credential), alert: .credentialRefused)
        }
        if reaction.verdict == .retry(.atOnce) {
            if let stop = stop(of: flight.push) {
                reaction = stop
            } else if isDraining {
                reaction = Self.later
            } else {
                return sendAgain(number, after: outcome, reaction)
            }
        }
        finish(number, reaction, outcome, uniqueID: uniqueID, now: moment.now)
        switch reaction.verdict {
        case .stop(.credential): stop(.credential, reaction)
        case .stop(.topic): stop(.topic(flight.push.form.topic), reaction)
        default: break
        }
    }

    private func attempt(_ flight: Flight) -> APNsAttempt {
        var attempt = APNsAttempt(
            registeredAt: flight.push.registeredAt, sentAt: flight.sentAt?.wall ?? 0)
        attempt.mayTryOtherEnvironment = flight.push.mayTryOtherEnvironment
        attempt.failures = flight.push.failures + flight.failures
        attempt.hasMinted = flight.hasMinted
        attempt.hasReconnected = flight.hasReconnected
        attempt.connectionAnswers = (answers[flight.connection] ?? 0) > flight.answersBefore
        return attempt
    }

    private mutating func sendAgain(
        _ number: UInt64, after outcome: APNsOutcome, _ reaction: APNsReaction
    ) {
        flights[Int(number)]?.failures += 1
        if reaction.providerToken == .mint { flights[Int(number)]?.hasMinted = true }
        if case .answered = outcome, reaction.connection == .replace {
            flights[Int(number)]?.hasReconnected = true
        }
        scheduler.addAgain(number)
    }

    /// Replaces the provider token that APNs refused as expired; returns whether there is, or will
    /// be, another one.
    private mutating func replaceToken(of flight: Flight, _ moment: Moment) -> Bool {
        guard !isFetching else { return true }
        guard let token = flight.token else { return false }
        switch age.expired(token, now: moment.now, wall: moment.wall) {
        case .useCurrent: return true
        case .clockIsWrong: return false
        case .mint:
            fetchToken(refused: tokens[token.number])
            return true
        }
    }

    private mutating func stop(_ scope: Stop, _ reaction: APNsReaction) {
        stops[scope] = reaction
        for number in scheduler.removeWaiting() {
            guard let flight = flight(number) else { continue }
            switch scope {
            case .credential: finish(number, reaction)
            case .topic(flight.push.form.topic): finish(number, reaction)
            case .topic: _ = scheduler.add(number)
            }
        }
    }
}
