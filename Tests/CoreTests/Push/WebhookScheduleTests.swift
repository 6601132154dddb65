import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct WebhookScheduleTests {
    static let day: Int64 = 86_400_000

    /// Returns the waits of attempts that all fail with one answer, each made when it is due, until
    /// the endpoint is disabled.
    static func failures(
        _ answer: WebhookResponse?, random: UInt64 = 0
    ) -> (waits: [Int64], disabled: WebhookSchedule.Disabled?, at: Int64) {
        var schedule = WebhookSchedule()
        var waits: [Int64] = []
        var now: Int64 = 0
        while waits.count < 100 {
            let attempt = schedule.attempt(saying: 1)
            switch schedule.answered(answer, to: attempt, now: now, random: random) {
            case .retry(let at):
                waits.append(at - now)
                now = at
            case .disabled(let reason): return (waits, reason, now)
            case .delivered, .failed: return (waits, nil, now)
            }
        }
        return (waits, nil, now)
    }

    @Test(
        arguments: [
            nil, .status(500), .status(301), .status(404), .status(429), .status(100),
        ] as [WebhookResponse?])
    func `failures are tried again ever more rarely until five days are over`(
        answer: WebhookResponse?
    ) {
        let (waits, disabled, at) = Self.failures(answer)
        #expect(Array(waits.prefix(9)) == WebhookSchedule.waits)
        #expect(waits.dropFirst(9).allSatisfy { $0 == Self.day })
        #expect(disabled == .failing && (5 * Self.day..<6 * Self.day).contains(at))
    }

    @Test(arguments: [1, 12_345, UInt64.max / 3, .max])
    func `a wait gets at most a quarter more, and an hour`(random: UInt64) {
        let (waits, _, _) = Self.failures(.none, random: random)
        for (wait, least) in zip(waits, WebhookSchedule.waits) {
            #expect((least...least + min(least / 4, 3_600_000)).contains(wait))
        }
    }

    @Test(arguments: [
        (-5 as Int64, 5_000 as Int64), (0, 5_000), (4, 5_000), (60, 60_000),
        (86_400, 86_400_000), (86_401, 86_400_000), (.max, 86_400_000), (.min, 5_000),
    ])
    func `Retry-After puts off the next attempt, a day at most, and hastens none`(
        seconds: Int64, wait: Int64
    ) {
        let (waits, _, _) = Self.failures(.status(429, retryAfter: seconds))
        #expect(waits.first == wait)
    }

    @Test func `410 disables at once, and only enabling it helps`() {
        var schedule = WebhookSchedule()
        let attempt = schedule.attempt(saying: 1)
        let gone = schedule.answered(.status(410), to: attempt, now: 0, random: 0)
        let late = schedule.answered(.status(500), to: attempt, now: 1, random: 0)
        #expect(gone == .disabled(.gone) && late == .disabled(.gone))
        let taken = schedule.answered(.status(200), to: attempt, now: 2, random: 0)
        #expect(taken == .delivered && schedule.disabled == .gone)
        schedule.enable()
        #expect(schedule.disabled == nil)
        let again = schedule.answered(.status(500), to: attempt, now: 3, random: 0)
        #expect(again == .retry(at: 5_003))
    }

    @Test func `a success starts the five days and the waits anew`() {
        var schedule = WebhookSchedule()
        let attempt = schedule.attempt(saying: 1)
        for now in [0, 3 * Self.day] {
            _ = schedule.answered(.none, to: attempt, now: now, random: 0)
        }
        _ = schedule.answered(.status(204), to: attempt, now: 4 * Self.day, random: 0)
        let next = schedule.answered(.none, to: attempt, now: 6 * Self.day, random: 0)
        #expect(next == .retry(at: 6 * Self.day + 5_000))
    }

    @Test func `an attempt that says something else is another message`() {
        var schedule = WebhookSchedule()
        var numbers: [UInt64] = []
        func send(_ content: UInt64, _ status: Int, isManual: Bool = false) {
            let attempt = schedule.attempt(saying: content, isManual: isManual)
            numbers.append(attempt.message)
            _ = schedule.answered(.status(status), to: attempt, now: 0, random: 0)
        }
        send(0, 500)
        send(0, 500)
        send(7, 500)
        send(7, 200)
        // The same content is a new message after it was accepted.
        send(7, 500)
        send(7, 200)
        // A request by a person repeats accepted content under the same number.
        send(7, 200, isManual: true)
        send(8, 200, isManual: true)
        #expect(numbers == [1, 1, 2, 2, 3, 3, 3, 4])
    }

    @Test func `what a person sends again does not touch the endpoint's health`() {
        var schedule = WebhookSchedule()
        let attempt = schedule.attempt(saying: 1)
        _ = schedule.answered(.none, to: attempt, now: 0, random: 0)
        let before = schedule
        for status in [200, 410, 500] {
            let manual = schedule.attempt(saying: 1, isManual: true)
            let outcome = schedule.answered(
                .status(status), to: manual, now: 9 * Self.day, random: 0)
            #expect(outcome == (status == 200 ? .delivered : .failed))
            #expect(schedule.failures == before.failures && schedule.disabled == nil)
        }
        // An accepted manual push is not repeated under the same number.
        #expect(schedule.attempt(saying: 1).message == 2)
    }

    @Test(arguments: 0..<40)
    func `persisted at any moment it decides as if it never was`(seed: Int) throws {
        var random = SplitMix64(seed: UInt64(seed))
        var schedule = WebhookSchedule()
        var persisted = schedule
        var lag: Int64 = 0
        var now: Int64 = 0
        for _ in 0..<200 {
            let away = Int64(random.below(86_400_000))
            let saved = persisted.saved(now: now - lag, wall: 0)
            now += away
            lag = random.pick([0, 1_000_000])
            persisted = try WebhookSchedule(saved, now: now - lag, wall: away)
            let content = UInt64(random.below(3))
            let isManual = random.happens(10)
            let attempt = schedule.attempt(saying: content, isManual: isManual)
            #expect(persisted.attempt(saying: content, isManual: isManual) == attempt)
            let answer: WebhookResponse? = random.pick([
                .none, .status(500), .status(503, retryAfter: 60), .status(200), .none,
                .status(410),
            ])
            let jitter = random.next()
            let outcome = schedule.answered(answer, to: attempt, now: now, random: jitter)
            let other = persisted.answered(answer, to: attempt, now: now - lag, random: jitter)
            if case .retry(let at) = outcome {
                #expect(other == .retry(at: at - lag))
            } else {
                #expect(other == outcome)
            }
            #expect(persisted.disabled == schedule.disabled)
            if schedule.disabled != nil, random.happens(50) {
                schedule.enable()
                persisted.enable()
            }
        }
    }

    @Test(arguments: [.max, .min, 0] as [Int64])
    func `a clock that was set does not disable an endpoint`(wall: Int64) throws {
        var schedule = WebhookSchedule()
        let attempt = schedule.attempt(saying: 1)
        _ = schedule.answered(.none, to: attempt, now: 0, random: 0)
        var read = try WebhookSchedule(schedule.saved(now: 0, wall: 0), now: 0, wall: wall)
        let outcome = read.answered(.none, to: attempt, now: 4 * Self.day - 1, random: 0)
        #expect(outcome == .retry(at: 4 * Self.day - 1 + 300_000))
    }
}
