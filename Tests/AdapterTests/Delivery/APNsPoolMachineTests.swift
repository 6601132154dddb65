import GatewayCore
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayDelivery

/// The pool's decisions, without connections, threads and time.
@Suite struct APNsPoolMachineTests {
    private static let minute: Int64 = 60_000

    /// An action without the parts that few tests check.
    enum Step: Equatable {
        case send(UInt64, on: UInt64, opens: Bool = false)
        case close(UInt64)
        case fetchToken
        case finish(UInt64, APNsReaction.Verdict)
        case wake(Int64)
    }

    /// A machine that gets its tokens at once, and its current time.
    struct Pool {
        var machine: APNsPoolMachine
        var now: Int64 = 0
        /// The number of tokens fetched, and the refused tokens that they replaced.
        var fetched = 0
        var refused: [String?] = []
        var hasTokens = true
        var isAnsweringFetches = true
        var results: [APNsPushResult] = []

        init(waitingMax: Int = 100, usesTokens: Bool = true, seed: UInt64 = 1) {
            machine = APNsPoolMachine(
                ConnectionScheduler.Terms(
                    lanesMax: 2, windowMax: 3, usesTokens: usesTokens, waitingMax: waitingMax),
                random: SplitMix64(seed: seed))
        }

        var moment: APNsPoolMachine.Moment {
            APNsPoolMachine.Moment(now: now, wall: 1_800_000_000_000 + now)
        }

        mutating func fetch() {
            fetched += 1
            machine.fetched(
                hasTokens
                    ? SharedProviderToken(text: "token\(fetched)", issuedAt: moment.wall / 1_000)
                    : nil, moment)
        }

        /// Returns all current actions except wake-ups.
        mutating func steps() -> [Step] {
            var steps: [Step] = []
            while let action = machine.next(moment) {
                switch action {
                case .send(let flight, let connection, let opens):
                    steps.append(.send(flight, on: connection, opens: opens))
                case .close(let connection): steps.append(.close(connection))
                case .fetchToken(let token):
                    refused.append(token?.text)
                    if isAnsweringFetches { fetch() } else { steps.append(.fetchToken) }
                case .finish(let flight, let result):
                    results.append(result)
                    steps.append(.finish(flight, result.reaction.verdict))
                case .wake: break
                }
            }
            return steps
        }

        mutating func end(_ flight: UInt64, _ outcome: APNsOutcome?) {
            machine.ended(flight, outcome, uniqueID: nil, moment)
        }

        mutating func answer(_ flight: UInt64, _ status: Int, _ reason: String? = nil) {
            end(flight, .answered(status: status, reason: reason))
        }

        /// Adds pushes and answers the first with success, so that the connection is proven.
        mutating func begin(_ pushes: [APNsPush]) {
            for push in pushes { _ = machine.add(push) }
            _ = steps()
            machine.connected(1)
            answer(0, 200)
        }
    }

    private func push(_ channel: APNsPushType = .widgets, failures: Int = 0) throws -> APNsPush {
        let form = try APNsPushForm(channel, app: "com.mygame")
        var push = try #require(APNsPush(token: "0a0b", form: form, registeredAt: 1))
        push.failures = failures
        return push
    }

    private func isIdle(_ pool: inout Pool) -> Bool { pool.machine.next(pool.moment) == nil }

    private func pushes(_ count: Int) throws -> [APNsPush] {
        try (0..<count).map { _ in try push() }
    }

    @Test func `a push goes alone until one was accepted, and its result has the last request`()
        throws
    {
        var pool = Pool()
        for push in try pushes(3) { _ = pool.machine.add(push) }
        #expect(pool.steps() == [.send(0, on: 1, opens: true)])
        #expect(
            pool.machine.flight(0).flatMap { pool.machine.text(of: $0.token) }?.text == "token1")
        pool.machine.connected(1)
        #expect(pool.steps() == [])
        pool.now = 70
        pool.answer(0, 200)
        #expect(
            pool.steps() == [.finish(0, .delivered), .send(1, on: 1), .send(2, on: 1)])
        #expect(pool.results[0].milliseconds == 70 && pool.results[0].requests == 1)
        #expect(pool.machine.figures.underWay == 2 && pool.machine.figures.opened == 1)
        #expect(pool.fetched == 1 && pool.refused == [nil])
    }

    @Test func `a number is used again once its result was handed out`() throws {
        var pool = Pool(waitingMax: 1)
        let numbers = try pushes(3).map { pool.machine.add($0) }
        #expect(numbers == [0, 1, 2])
        #expect(
            pool.steps() == [
                .finish(1, .retry(.connection)), .finish(2, .retry(.connection)),
                .send(0, on: 1, opens: true),
            ])
        let next = pool.machine.add(try push())
        #expect([1, 2].contains(next))
    }

    @Test func `nothing is sent while a token is looked for`() throws {
        var pool = Pool()
        pool.isAnsweringFetches = false
        _ = pool.machine.add(try push())
        #expect(pool.steps() == [.fetchToken])
        #expect(pool.steps() == [])
        pool.fetch()
        #expect(pool.steps() == [.send(0, on: 1, opens: true)])
    }

    @Test func `without a token everything is refused until it is resumed`() throws {
        var pool = Pool()
        pool.hasTokens = false
        for push in try pushes(2) { _ = pool.machine.add(push) }
        let refused: [Step] = [.finish(0, .stop(.credential)), .finish(1, .stop(.credential))]
        #expect(pool.steps() == refused)
        let late = pool.machine.add(try push())
        #expect(pool.steps() == [.finish(late, .stop(.credential))])
        pool.hasTokens = true
        pool.machine.resume()
        let again = pool.machine.add(try push())
        #expect(pool.steps() == [.send(again, on: 1, opens: true)])
    }

    @Test func `pushes refused with one expired token make one new one and go again first`() throws
    {
        var pool = Pool()
        pool.begin(try pushes(4))
        #expect(pool.steps().count == 4)
        pool.now = 30 * Self.minute
        pool.answer(1, 403, "ExpiredProviderToken")
        pool.answer(2, 403, "ExpiredProviderToken")
        #expect(pool.steps() == [.send(2, on: 1), .send(1, on: 1)])
        #expect(pool.fetched == 2 && pool.refused == [nil, "token1"])
        // The second time the token's age cannot be the reason.
        pool.answer(1, 403, "ExpiredProviderToken")
        #expect(pool.steps().contains(.finish(1, .stop(.credential))))
    }

    @Test func `a young token that is refused as expired stops the key`() throws {
        var pool = Pool()
        pool.begin(try pushes(3))
        _ = pool.steps()
        pool.now = 5 * Self.minute
        pool.answer(1, 403, "ExpiredProviderToken")
        #expect(pool.steps() == [.finish(1, .stop(.credential))])
        #expect(pool.results.last?.reaction.alert == .credentialRefused)
        // A push in flight gets its own answer.
        pool.answer(2, 200)
        #expect(pool.steps() == [.finish(2, .delivered)])
    }

    @Test func `a refused topic leaves the others`() throws {
        var pool = Pool()
        pool.begin(try pushes(4))
        _ = pool.steps()
        let (widgets, controls) = (
            pool.machine.add(try push()), pool.machine.add(try push(.controls))
        )
        #expect(pool.steps() == [])
        pool.answer(1, 400, "TopicDisallowed")
        let steps = pool.steps()
        #expect(
            steps == [
                .finish(1, .stop(.topic)), .finish(widgets, .stop(.topic)),
                .send(controls, on: 1),
            ])
    }

    @Test func `a push that was not processed goes again once on another connection`() throws {
        var pool = Pool()
        pool.begin(try pushes(2))
        _ = pool.steps()
        pool.now = 2_000
        pool.end(1, .failed(.notProcessed))
        #expect(pool.steps() == [.close(1), .send(1, on: 2, opens: true)])
        pool.end(1, .failed(.notProcessed))
        #expect(pool.steps() == [.finish(1, .retry(.connection)), .close(2)])
        #expect(pool.results.last?.requests == 2)
    }

    @Test func `a push that failed before is not tried twice here`() throws {
        var pool = Pool()
        pool.begin([try push(), try push(failures: 1)])
        _ = pool.steps()
        pool.end(1, .failed(.notProcessed))
        #expect(pool.steps().first == .finish(1, .retry(.connection)))
    }

    @Test func `a push that its connection did not take counts as no request`() throws {
        var pool = Pool()
        pool.begin(try pushes(2))
        _ = pool.steps()
        pool.machine.unsent(1)
        pool.now = 2_000
        #expect(pool.steps() == [.close(1), .send(1, on: 2, opens: true)])
        pool.answer(1, 200)
        #expect(pool.steps() == [.finish(1, .delivered)])
        #expect(pool.results.last?.requests == 1)
    }

    @Test func `a push that its connection did not take is not sent after a stop`() throws {
        var pool = Pool()
        pool.begin(try pushes(3))
        _ = pool.steps()
        pool.answer(1, 403, "InvalidProviderToken")
        pool.machine.unsent(2)
        #expect(
            pool.steps() == [
                .finish(1, .stop(.credential)), .finish(2, .stop(.credential)), .close(1),
            ])
    }

    @Test func `draining gives up what waits and ends with what is in flight`() throws {
        var pool = Pool()
        for push in try pushes(2) { _ = pool.machine.add(push) }
        _ = pool.steps()
        pool.machine.drain()
        #expect(!pool.machine.isDrained)
        #expect(pool.steps() == [.finish(1, .retry(.connection))])
        let late = pool.machine.add(try push())
        #expect(pool.steps() == [.finish(late, .retry(.connection))])
        // A push that could be sent again at once is left to the caller.
        pool.end(0, .failed(.notProcessed))
        #expect(!pool.machine.isDrained)
        #expect(pool.steps() == [.finish(0, .retry(.connection)), .close(1)])
        #expect(pool.machine.isDrained)
    }

    @Test func `giving up ends everything once`() throws {
        var pool = Pool()
        pool.begin(try pushes(5))
        _ = pool.steps()
        pool.machine.giveUp()
        #expect(pool.steps().count == 4)
        pool.answer(1, 200)
        #expect(pool.steps() == [] && pool.machine.isDrained)
    }

    @Test func `only an earlier time than the last asks for another wake-up`() throws {
        var pool = Pool(usesTokens: false)
        for push in try pushes(2) { _ = pool.machine.add(push) }
        guard case .send = pool.machine.next(pool.moment),
            case .wake(10_000) = pool.machine.next(pool.moment)
        else {
            Issue.record("a send and a wake-up were expected")
            return
        }
        #expect(isIdle(&pool))
        pool.machine.timerFired(at: 9_000)
        #expect(isIdle(&pool))
        pool.machine.timerFired(at: 10_000)
        guard case .wake(10_000) = pool.machine.next(pool.moment) else {
            Issue.record("a wake-up was expected")
            return
        }
    }

    /// Whatever happens, each push has one result, no connection carries more than allowed or is
    /// used after its end, and nothing is sent with a stopped key.
    @Test(arguments: 0..<200 as Range<UInt64>)
    func `every push has one result`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var pool = Pool(waitingMax: 1 + random.below(20), seed: seed)
        let kinds = [try push(), try push(.controls), try push(failures: 1)]
        var open: Set<UInt64> = []
        var gone: Set<UInt64> = []
        var inFlight: [UInt64: UInt64] = [:]
        var unfinished: Set<UInt64> = []
        var isStopped = false
        func check(_ steps: [Step]) {
            for step in steps {
                switch step {
                case .send(let flight, let connection, let opens):
                    #expect(!isStopped && unfinished.contains(flight))
                    #expect(opens ? !open.contains(connection) : open.contains(connection))
                    #expect(!gone.contains(connection))
                    open.insert(connection)
                    #expect(inFlight.updateValue(connection, forKey: flight) == nil)
                    #expect(inFlight.values.count { $0 == connection } <= 3)
                case .close(let connection):
                    #expect(open.contains(connection) && !inFlight.values.contains(connection))
                    gone.insert(connection)
                case .finish(let flight, let verdict):
                    #expect(unfinished.remove(flight) != nil && inFlight[flight] == nil)
                    if verdict == .stop(.credential) { isStopped = true }
                case .fetchToken, .wake: break
                }
            }
        }
        for _ in 0..<300 {
            switch random.below(8) {
            case 0...2: unfinished.insert(pool.machine.add(random.pick(kinds)))
            case 3: pool.now += Int64(random.below(random.happens(5) ? 1_800_000 : 3_000))
            case 4:
                if let connection = open.sorted().randomElement(using: &random) {
                    pool.machine.connected(connection)
                }
            case 5 where random.happens(20):
                if random.happens(50) {
                    pool.machine.resume()
                    isStopped = false
                } else if let connection = open.sorted().randomElement(using: &random) {
                    pool.machine.retire(connection)
                }
            default:
                guard let flight = inFlight.keys.sorted().randomElement(using: &random) else {
                    continue
                }
                inFlight[flight] = nil
                pool.end(
                    flight,
                    random.pick([
                        .answered(status: 200), .answered(status: 200), .answered(status: 200),
                        .failed(.notProcessed), .failed(.connectionEnded), .failed(.timedOut), nil,
                        .answered(status: 403, reason: "ExpiredProviderToken"),
                        .answered(status: 400, reason: "TopicDisallowed"),
                        .answered(status: 429, reason: "TooManyRequests"),
                    ]))
            }
            check(pool.steps())
        }
        pool.machine.drain()
        check(pool.steps())
        for flight in inFlight.keys.sorted() {
            inFlight[flight] = nil
            pool.answer(flight, 200)
        }
        check(pool.steps())
        #expect(unfinished.isEmpty && pool.machine.isDrained)
    }
}
