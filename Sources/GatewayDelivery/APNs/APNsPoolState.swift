import GatewayCore
import WidgetModel

/// What a pool knows; everything happens under its lock.
struct APNsPoolState {
    /// A push, from its coming to its result.
    struct Flight {
        let push: APNsPush
        let continuation: CheckedContinuation<APNsPushResult, Never>
        /// Header fields made in advance, with this provider token.
        let fields: DeliveryFields?
        let fieldsToken: UInt64?
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
    }

    /// A push that is to be sent now.
    struct Order {
        let flight: UInt64
        let lane: UInt64
        let opens: Bool
        let push: APNsPush
        /// Fields that are good as they are, or the token that new ones are made with.
        let fields: DeliveryFields?
        let token: String?
    }

    /// What is to be done once nobody is kept out any more.
    struct Due {
        var results: [(CheckedContinuation<APNsPushResult, Never>, APNsPushResult)] = []
        var drainers: [CheckedContinuation<Void, Never>] = []
        var timer: Int64?
        var wantsToken = false
        var refused: SharedProviderToken?
    }

    /// What APNs refuses.
    enum Stop: Hashable {
        case credential
        case topic(String)
    }

    private let configuration: APNsPool.Configuration
    private var lanes: APNsLanes
    private var engines: [UInt64: DeliveryEngine] = [:]
    /// How many answers came by each lane.
    private var answers: [UInt64: Int] = [:]
    private var flights: [UInt64: Flight] = [:]
    private var lastFlight: UInt64 = 0
    private var age = ProviderTokenAge()
    /// The tokens of `age`, by number.
    private var tokens: [UInt64: SharedProviderToken] = [:]
    private var isFetching = false
    private var timer: Int64?
    private var isDraining = false
    private var drainers: [CheckedContinuation<Void, Never>] = []
    private var random: UInt64
    private var totals = APNsPoolFigures()
    private var due = Due()
    /// What is not sent any more, and why.
    var stops: [Stop: APNsReaction] = [:]

    init(_ configuration: APNsPool.Configuration) {
        self.configuration = configuration
        lanes = APNsLanes(configuration.lanes)
        random = .random(in: .min ... .max)
    }

    var figures: APNsPoolFigures {
        var figures = totals
        figures.waiting = lanes.waitingCount
        figures.underWay = lanes.underWayCount
        figures.connections = lanes.usableCount
        return figures
    }

    mutating func takeDue() -> Due {
        if isDraining, flights.isEmpty {
            due.drainers += drainers
            drainers.removeAll()
        }
        defer { due = Due() }
        return due
    }

    // MARK: Pushes come and go

    mutating func add(_ flight: Flight) {
        lastFlight += 1
        let stop = stops[.credential] ?? stops[.topic(flight.push.form.topic)]
        flights[lastFlight] = flight
        if let stop {
            finish(lastFlight, stop, nil)
        } else if isDraining || !lanes.add(lastFlight) {
            finish(lastFlight, Self.later, nil)
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
        guard let flight = flights.removeValue(forKey: number) else { return }
        let result = APNsPushResult(
            reaction: reaction, outcome: outcome, id: flight.push.id, uniqueID: uniqueID,
            milliseconds: milliseconds, requests: flight.requests)
        due.results.append((flight.continuation, result))
    }

    // MARK: Sending

    /// The next push to be sent, if one may be sent now.
    mutating func next(_ clock: DeliveryClock) -> Order? {
        while true {
            let (now, wall) = (clock.now(), clock.wall())
            var token: ProviderTokenAge.Token?
            if configuration.usesTokens, lanes.waitingCount > 0 {
                token = age.token(now: now, wall: wall)
                if token == nil || isFetching {
                    wantToken(clock)
                    if isFetching { return nil }
                    token = age.token(now: now, wall: wall)
                }
                guard token != nil else { return nil }
            }
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            switch lanes.next(now: now, random: random ^ random >> 32, token: token?.number) {
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
            case .recall(let lane):
                engines[lane]?.recall()
            case .close(let lane):
                answers[lane] = nil
                engines.removeValue(forKey: lane)?.close()
            case .send(let push, let lane, let opens):
                return order(push, lane, opens, token, now, wall)
            }
        }
    }

    private mutating func order(
        _ number: UInt64, _ lane: UInt64, _ opens: Bool, _ token: ProviderTokenAge.Token?,
        _ now: Int64, _ wall: Int64
    ) -> Order? {
        guard var flight = flights[number] else { return nil }
        flight.lane = lane
        flight.token = token
        flight.sentAt = now
        flight.sentAtWall = wall
        flight.answersBefore = answers[lane] ?? 0
        flight.requests += 1
        flights[number] = flight
        let isMade = flight.fields != nil && flight.fieldsToken == token?.number
        return Order(
            flight: number, lane: lane, opens: opens, push: flight.push,
            fields: isMade ? flight.fields : nil, token: token.flatMap { tokens[$0.number]?.text })
    }

    mutating func timerRang(at moment: Int64) {
        if timer == moment { timer = nil }
    }

    // MARK: Connections

    mutating func opened(_ lane: UInt64, _ engine: DeliveryEngine) {
        engines[lane] = engine
        totals.opened += 1
    }

    func engine(of lane: UInt64) -> DeliveryEngine? { engines[lane] }

    mutating func connection(
        _ event: DeliveryEngine.Configuration.ConnectionEvent, _ lane: UInt64
    ) {
        switch event {
        case .opened: lanes.connected(lane)
        case .closed: lanes.disconnected(lane)
        }
    }

    func closeEngines() {
        for engine in engines.values { engine.close() }
    }

    // MARK: The provider token

    /// The token pushes are sent with now.
    func token(_ clock: DeliveryClock) -> (number: UInt64, text: String)? {
        guard !isFetching, let token = age.token(now: clock.now(), wall: clock.wall()),
            let text = tokens[token.number]?.text
        else { return nil }
        return (token.number, text)
    }

    /// A token is needed: at once, or, where nodes share it, soon.
    private mutating func wantToken(_ clock: DeliveryClock, refused: SharedProviderToken? = nil) {
        guard !isFetching, case .key(let key) = configuration.credential else { return }
        if key.share == nil {
            take(key.mint(clock), clock)
        } else {
            isFetching = true
            due.wantsToken = true
            due.refused = refused
        }
    }

    mutating func fetched(_ token: SharedProviderToken?, _ clock: DeliveryClock) {
        isFetching = false
        take(token, clock)
    }

    private mutating func take(_ token: SharedProviderToken?, _ clock: DeliveryClock) {
        guard let token else {
            stop(.credential, APNsReaction(.stop(.credential), alert: .credential))
            return
        }
        totals.providerTokens += 1
        let adopted = age.adopted(
            issuedAt: token.issuedAt * 1_000, now: clock.now(), wall: clock.wall())
        tokens[adopted.number] = token
        // The one before the one before is of no use.
        tokens[adopted.number &- 2] = nil
    }

    // MARK: Outcomes

    /// A push could not be handed to the engine of its lane.
    mutating func unsent(_ order: Order) {
        lanes.ended(on: order.lane, .unsent)
        flights[order.flight]?.requests -= 1
        // A push that can never be sent must not be tried for ever.
        if order.fields == nil, (try? configuration.fields(of: order.push, order.token)) == nil {
            finish(order.flight, APNsReaction(.giveUp, alert: .badRequest), nil)
        } else {
            lanes.addAgain(order.flight)
        }
    }

    mutating func ended(_ number: UInt64, _ outcome: DeliveryOutcome, _ clock: DeliveryClock) {
        guard let flight = flights[number] else { return }
        let said: APNsOutcome
        var uniqueID: String?
        switch outcome {
        case .success(let answer):
            said = Self.outcome(of: answer)
            uniqueID = answer.field(1)
            lanes.ended(on: flight.lane, (200..<300).contains(answer.status) ? .taken : .answered)
            answers[flight.lane, default: 0] += 1
        case .failure(let error) where error.code == .noConnection:
            lanes.ended(on: flight.lane, .unsent)
            lanes.addAgain(number)
            flights[number]?.requests -= 1
            return
        case .failure(let error):
            guard let failure = error.failure else {
                lanes.ended(on: flight.lane, .unsent)
                finish(number, Self.later, nil)
                return
            }
            said = .failed(failure)
            lanes.ended(on: flight.lane, .failed)
        }
        react(to: said, number, flight, uniqueID, clock)
    }

    private mutating func react(
        to outcome: APNsOutcome, _ number: UInt64, _ flight: Flight, _ uniqueID: String?,
        _ clock: DeliveryClock
    ) {
        let (now, wall) = (clock.now(), clock.wall())
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
        if reaction.providerToken == .mint, !mayMint(for: flight, now: now, wall: wall, clock) {
            reaction = APNsReaction(.stop(.credential), alert: .credential)
        }
        if reaction.verdict == .retry(.atOnce) {
            flights[number]?.failures += 1
            if reaction.providerToken == .mint { flights[number]?.hasMinted = true }
            if case .answered = outcome, reaction.connection == .replace {
                flights[number]?.hasReconnected = true
            }
            let stop = stops[.credential] ?? stops[.topic(flight.push.form.topic)]
            if stop == nil, !isDraining { return lanes.addAgain(number) }
            reaction = stop ?? Self.later
        }
        finish(
            number, reaction, outcome, uniqueID: uniqueID,
            milliseconds: max(0, now - flight.sentAt))
        switch reaction.verdict {
        case .stop(.credential): stop(.credential, reaction)
        case .stop(.topic): stop(.topic(flight.push.form.topic), reaction)
        default: break
        }
    }

    /// Whether there is, or will be, another token than the one a push was refused with as expired.
    private mutating func mayMint(
        for flight: Flight, now: Int64, wall: Int64, _ clock: DeliveryClock
    ) -> Bool {
        guard let token = flight.token, !isFetching else { return isFetching }
        switch age.expired(token, now: now, wall: wall) {
        case .useCurrent: return true
        case .clockIsWrong: return false
        case .mint:
            wantToken(clock, refused: tokens[token.number])
            return true
        }
    }

    private mutating func stop(_ what: Stop, _ reaction: APNsReaction) {
        stops[what] = reaction
        for number in lanes.removeWaiting() {
            guard let flight = flights[number] else { continue }
            switch what {
            case .credential: finish(number, reaction, nil)
            case .topic(flight.push.form.topic): finish(number, reaction, nil)
            case .topic: _ = lanes.add(number)
            }
        }
    }

    private static func outcome(of answer: DeliveryAnswer) -> APNsOutcome {
        guard answer.status != 200, let body = try? JSONValue(parsing: answer.body).objectValue
        else { return .answered(status: answer.status) }
        return .answered(
            status: answer.status, reason: body["reason"]?.stringValue,
            timestamp: body["timestamp"]?.integerValue)
    }
}
