import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

/// Random histories of one client, compared with a model that remembers every change, push and sign
/// of life.
@Suite struct DeliveryAttemptsModelTests {
    @Test(arguments: 0..<8)
    func `every push is due, none is forgotten`(part: Int) throws {
        var counts: [String: Int] = [:]
        for seed in stride(from: part, to: 4_000, by: 8) {
            var history = DeliveryHistory(seed: UInt64(seed))
            for _ in 0..<80 where history.violation == nil { try history.step() }
            if history.violation == nil { history.converge() }
            if let violation = history.violation {
                Issue.record("seed \(seed): \(violation)")
                return
            }
            counts.merge(history.counts, uniquingKeysWith: +)
        }
        for what in [
            "first", "repeat", "withheld", "second address", "taken", "failed", "given up",
            "restart", "confirmed at the end", "told at the end",
        ] {
            #expect(counts[what, default: 0] > 0, "\(what) never happened")
        }
    }
}

/// One client's history, and the outcome that the definitions require.
struct DeliveryHistory {
    private struct Change {
        let sequence: UInt64
        /// The time when a stream carried the change, or `nil`.
        let carriedAt: Int64?
    }

    private struct Told {
        var taken: [UInt64] = []
        var lastTakenAt: Int64 = 0
        var givenUp: UInt64 = 0
        var isUsable = true
        var underWay: (position: UInt64, isRepeat: Bool, isHeardOf: Bool)?
        var notBefore = Int64.min
        /// Whether the client showed a sign of life since the last accepted push was composed.
        var isHeardOf = true
        var repeats = 0

        var said: UInt64 { max(taken.max() ?? 0, givenUp) }
    }

    private(set) var violation: String?
    private(set) var counts: [String: Int] = [:]
    private var random: SplitMix64
    private var attempts = DeliveryAttempts()
    private var budget: PushBudget
    private var now: Int64 = 0
    private var head: UInt64 = 10
    private var changes: [Change] = []
    private var confirmed: UInt64 = 0
    private var streams = 0
    private var isKnownToAnswer = false
    private var order: [UInt64] = []
    private var told: [UInt64: Told] = [:]
    /// The sequence up to which any address, also one that is gone, took a push.
    private var accepted: UInt64 = 0
    /// The timestamp of the last push.
    private var stamp: Int64 = 0

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        budget = PushBudget(.init())
        register()
    }

    private var latest: UInt64 { changes.last?.sequence ?? 0 }

    mutating func step() throws {
        let pause: Int64 = random.pick([0, 1, 1_000, 9_000, 25_000, 400_000, 12_000_000])
        now += pause
        switch random.below(100) {
        case 0..<30: change()
        case 30..<40: openStream()
        case 40..<50: endStream()
        case 50..<60: acknowledge()
        case 60..<66: poll()
        case 66..<70: register()
        case 70..<76: try restart()
        case 76..<80: toggle()
        default: resolve()
        }
        run(asksBudget: true)
        let isConfirmed = attempts.confirmed == confirmed
        expect(isConfirmed, "only acknowledgements and cursors confirm")
        for id in order {
            let delivered = attempts.address(id)?.delivered ?? 0
            let taken = told[id]?.taken.max() ?? 0
            expect(delivered >= taken, "a push that was taken delivers")
            let said = max(confirmed, accepted)
            let isSkipped = changes.contains { $0.sequence > said && $0.sequence <= delivered }
            expect(!isSkipped, "only what was taken or confirmed is delivered")
        }
    }

    /// Stops all changes and faults; the client must then be notified within a bounded time.
    mutating func converge() {
        while streams > 0 { endStream() }
        for id in order where told[id]?.underWay != nil { finish(id, taken: true) }
        for _ in 0..<60 {
            run(asksBudget: false)
            guard violation == nil, case .wait(let until) = attempts.next(now: now) else { break }
            expect(until > now && until - now <= TimeAway.longest, "waits \(until - now)")
            now = until
        }
        expect(attempts.next(now: now) == .rest, "comes to rest")
        guard confirmed < latest else { return count("confirmed at the end") }
        let usable = order.compactMap { told[$0] }.filter {
            $0.isUsable && ($0.givenUp < latest || ($0.taken.max() ?? 0) >= latest)
        }
        guard !usable.isEmpty else { return }
        count("told at the end")
        let isTold = accepted >= latest || usable.contains { $0.said >= latest }
        expect(isTold, "somebody was told")
    }

    // MARK: - Events

    private mutating func change() {
        let others = UInt64(random.below(3))
        head += 1 + others
        changes.append(Change(sequence: head, carriedAt: streams > 0 ? now : nil))
        attempts.changed(
            at: head, urgency: random.pick(Urgency.allCases),
            delay: random.pick([0, 0, 7_000, 600_000]), now: now)
        // Changes that concern others move the head as well.
        let other = UInt64(random.below(2))
        head += other
    }

    private mutating func cursor() -> UInt64 {
        let any = UInt64(random.below(Int(head) + 1))
        return random.pick([0, confirmed, latest, head, any])
    }

    private mutating func openStream() {
        let cursor = cursor()
        streams += 1
        heard()
        confirmed = max(confirmed, cursor)
        attempts.streamOpened(resuming: cursor, now: now)
    }

    private mutating func endStream() {
        guard streams > 0 else { return }
        streams -= 1
        attempts.streamEnded(now: now)
    }

    private mutating func acknowledge() {
        let cursor = cursor()
        isKnownToAnswer = true
        heard()
        confirmed = max(confirmed, cursor)
        attempts.acknowledged(cursor)
    }

    private mutating func poll() {
        isKnownToAnswer = true
        heard()
        attempts.polled()
    }

    private mutating func heard() {
        for id in told.keys {
            told[id]?.isHeardOf = true
            told[id]?.underWay?.isHeardOf = true
            told[id]?.repeats = 0
        }
    }

    private mutating func register() {
        order = random.pick([[1], [1, 2], [2, 1], [1, 3], [], [1, 2, 3], [1, 2]])
        attempts.register(order, now: now)
        for id in told.keys where !order.contains(id) { told[id] = nil }
        for id in order where told[id] == nil { told[id] = Told() }
    }

    private mutating func toggle() {
        guard let id = order.first else { return }
        let isUsable = told[id]?.isUsable == false
        told[id]?.isUsable = isUsable
        told[id]?.underWay = nil
        attempts.setUsable(id, isUsable)
    }

    private mutating func restart() throws {
        count("restart")
        let saved = attempts.saved(.timelines, now: now, wall: 1_000)
        let positions = attempts.addresses.map(\.delivered)
        let budgetSaved = budget.saved(now: now, wall: 1_000)
        let away = Int64(random.below(5_000_000))
        let jump: Int64 = random.pick([0, 0, -50_000_000, 50_000_000_000])
        let wall = 1_000 + away + jump
        now += away
        attempts = try DeliveryAttempts(saved, now: now, wall: wall)
        budget = try PushBudget(budgetSaved, .init(), now: now, wall: wall)
        let isSame = attempts.addresses.map(\.delivered) == positions
        expect(isSame, "positions are persisted")
        streams = 0
        for id in order {
            told[id]?.underWay = nil
            // When the clock was set, any wait may be over.
            told[id]?.notBefore = .min
            told[id]?.lastTakenAt = .min / 2
        }
    }

    private mutating func resolve() {
        for id in order where told[id]?.underWay != nil {
            if random.happens(60) {
                let taken = random.happens(60)
                finish(id, taken: taken)
            }
        }
    }

    private mutating func finish(_ id: UInt64, taken: Bool) {
        guard let push = told[id]?.underWay else { return }
        told[id]?.underWay = nil
        if taken {
            count("taken")
            told[id]?.taken.append(push.position)
            accepted = max(accepted, push.position)
            told[id]?.lastTakenAt = now
            told[id]?.notBefore = .min
            told[id]?.isHeardOf = push.isHeardOf
            if push.isRepeat, !push.isHeardOf { told[id]?.repeats += 1 }
            attempts.delivered(id, now: now)
        } else if random.happens(15) {
            count("given up")
            let before = told[id]?.givenUp ?? 0
            told[id]?.givenUp = max(before, push.position)
            attempts.gaveUp(id)
        } else {
            count("failed")
            let wait: Int64 = random.pick([0, 1_000, 900_000])
            let until = now + wait
            told[id]?.notBefore = until
            attempts.failed(id, until: until)
        }
    }

    // MARK: - Pushes

    private mutating func run(asksBudget: Bool) {
        for _ in 0..<40 where violation == nil {
            guard case .push(let id) = attempts.next(now: now) else { break }
            check(id)
            if asksBudget, id == 1 {
                let verdict = budget.ask(
                    .widgets, stale: [.init(7)], urgency: attempts.urgency, now: now)
                if case .withhold(let until) = verdict {
                    count("withheld")
                    let at = now
                    expect(until > at, "withheld until \(until) at \(at)")
                    attempts.withheld(id, until: until)
                    continue
                }
            }
            begin(id)
            if !asksBudget || random.happens(50) {
                let taken = !asksBudget || random.happens(70)
                finish(id, taken: taken)
            }
        }
        let step = attempts.next(now: now)
        if case .push = step { expect(false, "pushes without end") }
        guard step == .rest, confirmed < latest else { return }
        let usable = order.compactMap { told[$0] }.filter(\.isUsable)
        let isAccountedFor =
            accepted >= latest || usable.allSatisfy { $0.givenUp >= latest }
            || usable.contains { $0.underWay != nil || $0.said >= latest }
        expect(isAccountedFor, "rests with something owed")
    }

    private mutating func begin(_ id: UInt64) {
        let isRepeat = told[id].map { ($0.taken.max() ?? 0) >= latest } ?? false
        told[id]?.underWay = (head, isRepeat, false)
        attempts.began(id, at: head, since: 0)
        let next = attempts.stamped(wall: Int64(random.below(1_000)))
        expect(next > stamp, "timestamps rise")
        stamp = next
    }

    private mutating func check(_ id: UInt64) {
        guard order.contains(id), let address = told[id] else {
            return expect(false, "pushes to \(id), which is not registered")
        }
        expect(confirmed < latest, "pushes what is confirmed")
        expect(address.isUsable && address.underWay == nil, "pushes to \(id) in vain")
        expect(address.givenUp < latest, "pushes what was refused for good")
        expect(now >= address.notBefore, "pushes before the wait is over")
        if id != order.first { count("second address") }
        if address.said < latest {
            count("first")
            let waiting = order.compactMap { told[$0] }.filter(\.isUsable).map(\.said).min() ?? 0
            let isFreshOnly = changes.allSatisfy {
                $0.sequence <= max(confirmed, waiting)
                    || $0.carriedAt.map { now - $0 < DeliveryAttempts.grace } ?? false
            }
            expect(!isFreshOnly, "does not give the stream its time")
        } else {
            count("repeat")
            expect(isKnownToAnswer && !address.isHeardOf, "repeats without reason")
            expect(address.repeats < DeliveryAttempts.repeatsMax, "repeats too often")
            let wait = DeliveryAttempts.repeatWaits[min(address.repeats, 2)]
            expect(now >= address.lastTakenAt + wait, "repeats too soon")
        }
    }

    private mutating func count(_ what: String) {
        counts[what, default: 0] += 1
    }

    private mutating func expect(_ holds: Bool, _ what: String) {
        if !holds, violation == nil { violation = what }
    }
}
