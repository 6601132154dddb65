import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct PushBudgetTests {
    static let minute: Int64 = 60_000
    static let a = PushBudget.Kind(1)
    static let b = PushBudget.Kind(2, interval: 60 * minute)
    static let allowed = PushBudget.Verdict.push(from: .widgets)

    private func credit(of account: PushBudget.Account, in saved: JSONValue) -> Int64? {
        saved.objectValue?[account.rawValue]?.integerValue
    }

    @Test func `a kind is the reason for a push again after its interval`() {
        var budget = PushBudget(.init())
        #expect(budget.ask(.widgets, stale: [Self.a], urgency: .normal, now: 0) == Self.allowed)
        // Urgency lets it borrow pushes, but does not shorten intervals.
        for urgency in Urgency.allCases {
            let verdict = budget.ask(.widgets, stale: [Self.a], urgency: urgency, now: 1)
            #expect(verdict == .withhold(until: 5 * Self.minute))
        }
        let due = budget.ask(.widgets, stale: [Self.a], urgency: .normal, now: 5 * Self.minute)
        #expect(due == Self.allowed)
    }

    @Test func `what one kind waits for does not delay another`() {
        var budget = PushBudget(.init())
        #expect(budget.ask(.widgets, stale: [Self.b], urgency: .normal, now: 0) == Self.allowed)
        #expect(budget.ask(.widgets, stale: [Self.a], urgency: .normal, now: 1) == Self.allowed)
    }

    @Test func `what is withheld rides on the next push and has its interval from there`() {
        var budget = PushBudget(.init())
        _ = budget.ask(.widgets, stale: [Self.a], urgency: .normal, now: 0)
        let withheld = budget.ask(.widgets, stale: [Self.a], urgency: .normal, now: Self.minute)
        #expect(withheld == .withhold(until: 5 * Self.minute))
        let riding = budget.ask(
            .widgets, stale: [Self.a, Self.b], urgency: .normal, now: 2 * Self.minute)
        #expect(riding == Self.allowed)
        let again = budget.ask(.widgets, stale: [Self.a], urgency: .normal, now: 5 * Self.minute)
        #expect(again == .withhold(until: 7 * Self.minute))
    }

    @Test func `each account has a count of its own`() {
        var budget = PushBudget(.init())
        var counts: [PushBudget.Account: Int] = [:]
        for channel in APNsPushType.allCases {
            for _ in 0..<100 {
                let verdict = budget.ask(channel, stale: [], urgency: .high, now: 0)
                if case .push(let account) = verdict { counts[account, default: 0] += 1 }
            }
        }
        #expect(
            counts == [
                .widgets: 9, .controls: 9, .background: 3, .activities: 10, .quietActivities: 30,
            ])
    }

    @Test func `a Live Activity is shown at once while that is allowed, and quietly after that`() {
        var budget = PushBudget(.init())
        func ask(_ urgency: Urgency, isStart: Bool = false, now: Int64 = 0) -> PushBudget.Verdict {
            budget.ask(
                .liveactivity, isStart: isStart, stale: [Self.a], urgency: urgency, now: now)
        }
        for urgency in [Urgency.veryLow, .low] {
            #expect(ask(urgency) == .push(from: .quietActivities))
        }
        for _ in 0..<6 { #expect(ask(.normal) == .push(from: .activities)) }
        #expect(ask(.normal) == .push(from: .quietActivities))
        for _ in 0..<2 { #expect(ask(.high) == .push(from: .activities)) }
        for _ in 0..<2 { #expect(ask(.high, isStart: true) == .push(from: .activities)) }
        // 231 pushes a day refill the account: one in 374,026 ms. No start is sent quietly.
        #expect(ask(.high, isStart: true) == .withhold(until: 374_026))
        #expect(ask(.low, isStart: true) == .withhold(until: 1_870_130))
        for _ in 0..<27 { #expect(ask(.high) == .push(from: .quietActivities)) }
        // 1,411 pushes a day refill the other: one in 61,234 ms.
        #expect(ask(.high) == .withhold(until: 61_234))
        #expect(ask(.high, now: 61_233) == .withhold(until: 61_234))
        #expect(ask(.high, now: 61_234) == .push(from: .quietActivities))
    }

    @Test func `what is given back, counted or limited anew concerns one account`() {
        var budget = PushBudget(.init())
        func left(_ account: PushBudget.Account) -> Int64? {
            credit(of: account, in: budget.saved(now: 0, wall: 0)).map { $0 / 86_400_000 }
        }
        for urgency in [Urgency.low, .high] {
            _ = budget.ask(.liveactivity, stale: [], urgency: urgency, now: 0)
        }
        budget.giveBack(.quietActivities, before: [], isCounted: true, now: 0)
        #expect(left(.activities) == 9 && left(.quietActivities) == 29)
        budget.giveBack(.quietActivities, before: [], isCounted: false, now: 0)
        budget.count(.liveactivity, pushed: [Self.a], now: 0)
        #expect(left(.activities) == 8 && left(.quietActivities) == 30)
        #expect(left(.widgets) == 9 && budget.savings(.liveactivity, now: 0).left == 8)
        // A Live Activity has no interval.
        #expect(budget.ask(.widgets, stale: [Self.a], urgency: .low, now: 0) == Self.allowed)
        var terms = PushBudget.Terms()
        terms[.activities] = .init(perDay: 100, burst: 5, reserve: 0)
        terms[.controls] = .init(perDay: 2, burst: 1, reserve: 0)
        budget.adopt(terms, now: 0)
        #expect(left(.activities) == 4 && left(.controls) == 1 && left(.quietActivities) == 30)
    }

    @Test func `kinds beyond the bound are forgotten oldest first`() {
        var terms = PushBudget.Terms()
        terms[.widgets] = .init(perDay: 10_000, burst: 10_000, reserve: 0)
        var budget = PushBudget(terms)
        let kinds = (0...PushBudget.kindsMax).map { PushBudget.Kind(UInt64($0)) }
        for kind in kinds {
            #expect(budget.ask(.widgets, stale: [kind], urgency: .normal, now: 0) == Self.allowed)
        }
        let saved = budget.saved(now: 0, wall: 0).objectValue
        #expect(saved?["pushed"]?.arrayValue?.count == PushBudget.kindsMax)
        #expect(budget.ask(.widgets, stale: [kinds[0]], urgency: .normal, now: 1) == Self.allowed)
        #expect(budget.ask(.widgets, stale: [kinds[9]], urgency: .normal, now: 1) != Self.allowed)
    }

    @Test(arguments: [
        (-10_000 as Int64, 0 as Int64), (0, 0), (10_000, 10_000), (.max, TimeAway.longest),
        (.min, 0),
    ])
    func `of a clock that was set no more than a day is believed`(
        jump: Int64, away: Int64
    ) throws {
        var budget = PushBudget(.init())
        for _ in 0..<9 { _ = budget.ask(.widgets, stale: [], urgency: .high, now: 0) }
        _ = budget.ask(.controls, stale: [], urgency: .high, now: 0)
        let saved = budget.saved(now: 0, wall: 0)
        let read = try PushBudget(saved, .init(), now: 777, wall: jump)
        let left = credit(of: .widgets, in: read.saved(now: 777, wall: 0))
        #expect(left == min(away * 40, 9 * 86_400_000))
    }

    @Test func `what was persisted is bounded by the terms it comes back to`() throws {
        let pushed = (0..<1_000 as Range<Int64>).map { kind -> JSONValue in
            ["kind": .integer(kind), "age": .integer(kind % 2 == 0 ? .max : .min)]
        }
        let saved: JSONValue = [
            "savedAt": 0, "widgets": .integer(.max), "controls": .integer(.min), "background": -1,
            "pushed": .array(pushed),
        ]
        let read = try PushBudget(saved, .init(), now: .min, wall: 0).saved(now: .min, wall: 0)
        #expect(credit(of: .widgets, in: read) == 9 * 86_400_000 as Int64)
        #expect(credit(of: .controls, in: read) == 0 && credit(of: .background, in: read) == 0)
        // An account that nothing was counted to is full, and need not be kept.
        #expect(credit(of: .activities, in: read) == nil)
        #expect(credit(of: .quietActivities, in: read) == nil)
        #expect(read.objectValue?["pushed"]?.arrayValue?.count == PushBudget.kindsMax)
    }

    /// Compares it with a model that remembers every push: never more than allowed, never sooner
    /// than the interval, withheld pushes go at the announced moment, and a budget persisted at any
    /// moment decides like one that never was.
    @Test(arguments: 0..<40)
    func `random questions agree with a model that remembers every push`(seed: Int) throws {
        var random = SplitMix64(seed: UInt64(seed))
        var terms = PushBudget.Terms()
        terms[.widgets] = .init(
            perDay: random.pick([3, 48]), burst: 1 + random.below(9), reserve: random.below(5))
        let kinds = (0..<5).map {
            PushBudget.Kind($0, interval: random.pick([0, 1, 5, 90, 1_440]) * Self.minute)
        }
        var budget = PushBudget(terms)
        var persisted = budget
        // The lag of the persisted budget's monotonic clock, in milliseconds.
        var lag: Int64 = 0
        var now: Int64 = 0
        var pushes: [(at: Int64, kinds: [PushBudget.Kind])] = []
        var stale: Set<PushBudget.Kind> = []
        var owedUntil: Int64?
        for _ in 0..<500 {
            if let until = owedUntil, random.happens(50) {
                now = until
            } else {
                now += Int64(random.below(random.pick([2, 600_000, 40_000_000])))
            }
            let isDue = owedUntil.map { now >= $0 } ?? false
            if random.happens(30) {
                let away = random.pick([0, 0, 5_000, 7_200_000] as [Int64])
                let wall = Int64(random.below(1_000_000_000))
                let saved = persisted.saved(now: now - lag, wall: wall)
                now += away
                lag = now - random.pick([0, 1_000_000])
                persisted = try PushBudget(saved, terms, now: now - lag, wall: wall + away)
            }
            if stale.isEmpty || random.happens(40) { stale.insert(random.pick(kinds)) }
            let asked = stale.sorted { $0.id < $1.id }
            let urgency = isDue ? .normal : random.pick(Urgency.allCases)
            let verdict = budget.ask(.widgets, stale: asked, urgency: urgency, now: now)
            let twin = persisted.ask(.widgets, stale: asked, urgency: urgency, now: now - lag)
            if isDue {
                #expect(verdict == Self.allowed, "what was withheld goes when it was said to")
            }
            switch (verdict, twin) {
            case (.push, .push):
                // At least one kind in it was not pushed within its interval.
                #expect(
                    asked.contains { kind in
                        let last = pushes.last { $0.kinds.contains(kind) }?.at
                        return last.map { now - $0 >= kind.interval } ?? true
                    })
                pushes.append((now, asked))
                stale = []
                owedUntil = nil
            case (.withhold(let until), .withhold(let other)):
                #expect(until == other + lag && until > now)
                // Urgent questions get an earlier moment, at which only urgent pushes may go.
                owedUntil = urgency == .high ? nil : until
            default:
                Issue.record("\(verdict) and \(twin) at \(now)")
            }
        }
        #expect(!pushes.isEmpty)
        for (place, push) in pushes.enumerated() {
            let window = pushes[place...].prefix { $0.at - push.at < PushAllowanceTests.day }
            #expect(window.count <= terms[.widgets].perDay)
        }
    }
}
