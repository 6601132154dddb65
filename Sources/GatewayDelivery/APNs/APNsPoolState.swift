import GatewayCore
import WidgetModel

/// What a pool knows, on its thread.
struct APNsPoolState {
    /// A push, from its coming to its result.
    final class Flight {
        let push: APNsPush
        let id: String
        let finished: APNsPool.Finished
        /// Its last request.
        var lane: UInt64 = 0
        var token: ProviderTokenAge.Token?
        var sentAt: Int64 = 0
        var sentAtWall: Int64 = 0
        var answersBefore = 0
        var requests = 0
        /// What was done about it here.
        var failures = 0
        var hasMinted = false
        var hasReconnected = false

        init(_ push: APNsPush, id: String, _ finished: @escaping APNsPool.Finished) {
            (self.push, self.id, self.finished) = (push, id, finished)
        }
    }

    /// What is to be done now.
    enum Step {
        /// Send a push by the connection of a lane, and open that for it or not.
        case send(UInt64, lane: UInt64, opens: Bool)
        /// Close the connection of a lane.
        case close(lane: UInt64)
    }

    /// What is to be done once there is nothing else to do.
    struct Due {
        var results: [(APNsPool.Finished, APNsPushResult)] = []
        var drainers: [CheckedContinuation<Void, Never>] = []
        var timer: Int64?
        var wantsToken = false
        var refused: SharedProviderToken?
    }

    /// When it is, by the pool's clock.
    struct Moment {
        /// Monotonic milliseconds.
        let now: Int64
        /// Milliseconds since 1970.
        let wall: Int64

        init(_ clock: DeliveryClock) { (now, wall) = (clock.now(), clock.wall()) }
    }

    /// What APNs refuses.
    enum Stop: Hashable {
        case credential
        case topic(String)
    }

    private let configuration: APNsPool.Configuration
    private var lanes: APNsLanes
    /// How many answers came by each lane.
    private var answers: [UInt64: Int] = [:]
    /// Each at the place that is its number.
    private var flights: [Flight?] = []
    private var freeFlights: [UInt64] = []
    private var age = ProviderTokenAge()
    /// The tokens of `age`, by number.
    private var tokens: [UInt64: SharedProviderToken] = [:]
    private var isFetching = false
    private var timer: Int64?
    private var isDraining = false
    private var drainers: [CheckedContinuation<Void, Never>] = []
    private var random: APNsRandom
    private var totals = APNsPoolFigures()
    private var due = Due()
    /// What is not sent any more, and why.
    var stops: [Stop: APNsReaction] = [:]

    init(_ configuration: APNsPool.Configuration) {
        self.configuration = configuration
        lanes = APNsLanes(configuration.lanes)
        random = APNsRandom(seed: .random(in: .min ... .max))
    }

    var figures: APNsPoolFigures {
        var figures = totals
        figures.waiting = lanes.waitingCount
        figures.underWay = lanes.underWayCount
        figures.connections = lanes.usableCount
        return figures
    }

    /// Tells what is due since it was last asked, in the memory of what it told before and was done.
    mutating func takeDue(into told: inout Due) {
        if isDraining, flights.count == freeFlights.count {
            due.drainers += drainers
            drainers.removeAll()
        }
        (told.timer, told.wantsToken, told.refused) = (nil, false, nil)
        swap(&told, &due)
    }

    // MARK: Pushes come and go

    mutating func add(_ push: APNsPush, _ finished: @escaping APNsPool.Finished) {
        let flight = Flight(push, id: push.id ?? random.uuid(), finished)
        let number = freeFlights.popLast() ?? UInt64(flights.count)
        if Int(number) == flights.count {
            flights.append(flight)
        } else {
            flights[Int(number)] = flight
        }
        let stop = stops[.credential] ?? stops[.topic(push.form.topic)]
        if let stop {
            finish(number, stop, nil)
        } else if isDraining || !lanes.add(number) {
            finish(number, Self.later, nil)
        }
    }

    mutating func drain(_ continuation: CheckedContinuation<Void, Never>) {
        isDraining = true
        drainers.append(continuation)
        for flight in lanes.removeWaiting() { finish(flight, Self.later, nil) }
    }

    /// What is refused without having been sent.
    private static let later = APNsReaction(.retry(.connection))

    private mutating func finish(
        _ number: UInt64, _ reaction: APNsReaction, _ outcome: APNsOutcome?,
        uniqueID: String? = nil, milliseconds: Int64 = 0
    ) {
        guard let flight = flight(number) else { return }
        flights[Int(number)] = nil
        freeFlights.append(number)
        let result = APNsPushResult(
            reaction: reaction, outcome: outcome, id: flight.id, uniqueID: uniqueID,
            milliseconds: milliseconds, requests: flight.requests)
        due.results.append((flight.finished, result))
    }

    /// The push of a number.
    func flight(_ number: UInt64) -> Flight? {
        number < flights.count ? flights[Int(number)] : nil
    }

    /// Gives up everything: nothing can be sent any more.
    mutating func giveUp() {
        isDraining = true
        for number in lanes.removeWaiting() { finish(number, Self.later, nil) }
        for number in flights.indices { finish(UInt64(number), Self.later, nil) }
    }

    // MARK: Sending

    /// What is to be done now, until there is nothing.
    mutating func next(_ moment: Moment) -> Step? {
        while true {
            var token: ProviderTokenAge.Token?
            if configuration.usesTokens, lanes.waitingCount > 0 {
                token = self.token(moment)
                guard token != nil else { return nil }
            }
            let step = lanes.next(now: moment.now, random: random.next(), token: token?.number)
            switch step {
            case nil:
                return nil
            case .wait(let until):
                if timer.map({ until < $0 }) ?? true {
                    timer = until
                    due.timer = until
                }
                return nil
            case .refuse(let push):
                finish(push, Self.later, nil)
            case .close(let lane):
                answers[lane] = nil
                return .close(lane: lane)
            case .send(let number, let lane, let opens):
                sent(number, lane, token, moment)
                if opens { totals.opened += 1 }
                return .send(number, lane: lane, opens: opens)
            }
        }
    }

    private mutating func sent(
        _ number: UInt64, _ lane: UInt64, _ token: ProviderTokenAge.Token?, _ moment: Moment
    ) {
        guard let flight = flight(number) else { return }
        flight.lane = lane
        flight.token = token
        flight.sentAt = moment.now
        flight.sentAtWall = moment.wall
        flight.answersBefore = answers[lane] ?? 0
        flight.requests += 1
    }

    mutating func timerRang(at moment: Int64) {
        if timer == moment { timer = nil }
    }

    // MARK: Connections

    /// The connection of a lane is open.
    mutating func connected(_ lane: UInt64) { lanes.connected(lane) }

    /// The peer of a lane allows so many requests at once.
    mutating func allowed(_ streams: Int, on lane: UInt64) { lanes.allowed(streams, on: lane) }

    /// Nothing is sent by a lane any more.
    mutating func retire(_ lane: UInt64) { lanes.retire(lane) }

    // MARK: The provider token

    /// What a push is sent with.
    func text(of token: ProviderTokenAge.Token?) -> (number: UInt64, text: String)? {
        guard let token, let shared = tokens[token.number] else { return nil }
        return (token.number, shared.text)
    }

    /// The token pushes are sent with now; without one it is asked for.
    private mutating func token(_ moment: Moment) -> ProviderTokenAge.Token? {
        let known = age.token(now: moment.now, wall: moment.wall)
        if known != nil, !isFetching { return known }
        wantToken(moment)
        return isFetching ? nil : age.token(now: moment.now, wall: moment.wall)
    }

    /// A token is needed: at once, or, where nodes share it, soon.
    private mutating func wantToken(_ moment: Moment, refused: SharedProviderToken? = nil) {
        guard !isFetching, case .key(let key) = configuration.credential else { return }
        if key.share == nil {
            take(key.mint(configuration.clock), moment)
        } else {
            isFetching = true
            due.wantsToken = true
            due.refused = refused
        }
    }

    mutating func fetched(_ token: SharedProviderToken?, _ moment: Moment) {
        isFetching = false
        take(token, moment)
    }

    private mutating func take(_ token: SharedProviderToken?, _ moment: Moment) {
        guard let token else {
            stop(.credential, APNsReaction(.stop(.credential), alert: .credential))
            return
        }
        totals.providerTokens += 1
        let adopted = age.adopted(
            issuedAt: token.issuedAt * 1_000, now: moment.now, wall: moment.wall)
        tokens[adopted.number] = token
        // The one before the one before is of no use.
        tokens[adopted.number &- 2] = nil
    }

    // MARK: Outcomes

    /// A push could not be handed to the connection of its lane.
    mutating func unsent(_ number: UInt64) {
        guard let flight = flight(number) else { return }
        lanes.ended(on: flight.lane, .unsent)
        flight.requests -= 1
        lanes.addAgain(number)
    }

    mutating func ended(_ number: UInt64, _ ending: APNsSession.Ending, _ moment: Moment) {
        guard let flight = flight(number) else { return }
        let said: APNsOutcome
        var uniqueID: String?
        switch ending {
        case .unsent:
            unsent(number)
            return
        case .answered(let status, let body, let id):
            said = Self.outcome(status, body)
            uniqueID = id
            lanes.ended(on: flight.lane, (200..<300).contains(status) ? .taken : .answered)
            answers[flight.lane, default: 0] += 1
        case .failed(let failure):
            said = .failed(failure)
            lanes.ended(on: flight.lane, .failed)
        }
        react(to: said, number, flight, uniqueID, moment)
    }

    private mutating func react(
        to outcome: APNsOutcome, _ number: UInt64, _ flight: Flight, _ uniqueID: String?,
        _ moment: Moment
    ) {
        var attempt = APNsAttempt(
            registeredAt: flight.push.registeredAt, sentAt: flight.sentAtWall)
        attempt.mayTryOtherEnvironment = flight.push.mayTryOtherEnvironment
        attempt.failures = flight.push.failures + flight.failures
        attempt.hasMinted = flight.hasMinted
        attempt.hasReconnected = flight.hasReconnected
        attempt.connectionAnswers = (answers[flight.lane] ?? 0) > flight.answersBefore
        var reaction = APNsReaction(to: outcome, of: attempt)
        if reaction.connection == .replace { lanes.retire(flight.lane) }
        if reaction.providerToken == .useOlder, let token = flight.token {
            age.refusedAsTooSoon(token)
        }
        if reaction.providerToken == .mint, !mayMint(for: flight, moment) {
            reaction = APNsReaction(.stop(.credential), alert: .credential)
        }
        if reaction.verdict == .retry(.atOnce) {
            flight.failures += 1
            if reaction.providerToken == .mint { flight.hasMinted = true }
            if case .answered = outcome, reaction.connection == .replace {
                flight.hasReconnected = true
            }
            let stop = stops[.credential] ?? stops[.topic(flight.push.form.topic)]
            if stop == nil, !isDraining { return lanes.addAgain(number) }
            reaction = stop ?? Self.later
        }
        finish(
            number, reaction, outcome, uniqueID: uniqueID,
            milliseconds: max(0, moment.now - flight.sentAt))
        switch reaction.verdict {
        case .stop(.credential): stop(.credential, reaction)
        case .stop(.topic): stop(.topic(flight.push.form.topic), reaction)
        default: break
        }
    }

    /// Whether there is, or will be, another token than the one a push was refused with as expired.
    private mutating func mayMint(for flight: Flight, _ moment: Moment) -> Bool {
        guard let token = flight.token, !isFetching else { return isFetching }
        switch age.expired(token, now: moment.now, wall: moment.wall) {
        case .useCurrent: return true
        case .clockIsWrong: return false
        case .mint:
            wantToken(moment, refused: tokens[token.number])
            return true
        }
    }

    private mutating func stop(_ what: Stop, _ reaction: APNsReaction) {
        stops[what] = reaction
        for number in lanes.removeWaiting() {
            guard let flight = flight(number) else { continue }
            switch what {
            case .credential: finish(number, reaction, nil)
            case .topic(flight.push.form.topic): finish(number, reaction, nil)
            case .topic: _ = lanes.add(number)
            }
        }
    }

    private static func outcome(_ status: Int, _ body: [UInt8]) -> APNsOutcome {
        guard status != 200, let body = try? JSONValue(parsing: body).objectValue else {
            return .answered(status: status)
        }
        return .answered(
            status: status, reason: body["reason"]?.stringValue,
            timestamp: body["timestamp"]?.integerValue)
    }
}
