import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct DeliveryAttemptsTests {
    static func attempts(_ addresses: [UInt64] = [1]) -> DeliveryAttempts {
        var attempts = DeliveryAttempts()
        attempts.register(addresses)
        return attempts
    }

    /// Pushes to the address, which accepts it.
    static func push(_ attempts: inout DeliveryAttempts, _ id: UInt64 = 1, at: UInt64, now: Int64) {
        #expect(attempts.next(now: now) == .push(address: id))
        attempts.began(id, at: at, since: 0)
        attempts.delivered(id, now: now)
    }

    @Test func `without a stream a change is pushed at once, and once`() {
        var attempts = Self.attempts()
        #expect(attempts.next(now: 0) == .rest)
        attempts.changed(at: 5, urgency: .normal, now: 0)
        #expect(attempts.next(now: 0) == .push(address: 1))
        attempts.began(1, at: 7, since: 0)
        #expect(attempts.next(now: 1) == .rest)
        attempts.delivered(1, now: 2)
        #expect(attempts.addresses[0].delivered == 7 && attempts.confirmed == 0)
        #expect(attempts.next(now: .max) == .rest)
        // The push covered the changes up to its position.
        attempts.changed(at: 7, urgency: .normal, now: 3)
        #expect(attempts.next(now: 3) == .rest)
        attempts.changed(at: 8, urgency: .normal, now: 4)
        #expect(attempts.next(now: 4) == .push(address: 1))
    }

    @Test func `what a stream carried has twenty seconds to be confirmed`() {
        var attempts = Self.attempts()
        attempts.streamOpened(resuming: 4, now: 0)
        attempts.changed(at: 5, urgency: .high, now: 30_000)
        #expect(attempts.next(now: 30_000) == .wait(until: 50_000))
        var confirmed = attempts
        confirmed.acknowledged(5)
        #expect(confirmed.next(now: 50_000) == .rest)
        #expect(attempts.next(now: 50_000) == .push(address: 1))
    }

    @Test func `later changes do not put off what waits already`() {
        var attempts = Self.attempts()
        attempts.streamOpened(resuming: 0, now: 0)
        for second in 0..<20 as Range<Int64> {
            attempts.changed(
                at: UInt64(second) + 1, urgency: .normal, delay: 5_000, now: 30_000 + second * 1_000
            )
        }
        #expect(attempts.next(now: 49_000) == .wait(until: 50_000))
    }

    @Test func `a confirmation of a part gives the rest its own twenty seconds`() {
        var attempts = Self.attempts()
        attempts.streamOpened(resuming: 0, now: 0)
        attempts.changed(at: 1, urgency: .normal, now: 30_000)
        attempts.changed(at: 2, urgency: .normal, now: 45_000)
        attempts.acknowledged(1)
        #expect(attempts.next(now: 50_000) == .wait(until: 65_000))
    }

    @Test func `what is left when a stream ends has twenty seconds, however often they come`() {
        var attempts = Self.attempts()
        attempts.streamOpened(resuming: 0, now: 0)
        attempts.changed(at: 1, urgency: .normal, now: 30_000)
        attempts.streamEnded(now: 40_000)
        #expect(attempts.next(now: 50_000) == .wait(until: 60_000))
        for now in stride(from: 45_000 as Int64, to: 200_000, by: 10_000) {
            attempts.streamOpened(resuming: 0, now: now)
            attempts.streamEnded(now: now + 5_000)
        }
        #expect(attempts.next(now: 70_000) == .push(address: 1))
    }

    @Test func `a change right after a stream ended waits for the client to come back`() {
        var attempts = Self.attempts()
        attempts.streamOpened(resuming: 0, now: 0)
        attempts.streamEnded(now: 30_000)
        attempts.changed(at: 1, urgency: .normal, now: 35_000)
        #expect(attempts.next(now: 35_000) == .wait(until: 50_000))
        attempts.streamOpened(resuming: 1, now: 40_000)
        #expect(attempts.next(now: .max) == .rest)
    }

    @Test func `a push says why a stream did not suffice`() {
        var attempts = Self.attempts()
        attempts.changed(at: 1, urgency: .normal, now: 0)
        Self.push(&attempts, at: 1, now: 0)
        #expect(attempts.addresses[0].cause == .noStream)
        attempts.streamOpened(resuming: 1, now: 0)
        var open = attempts
        open.changed(at: 2, urgency: .normal, now: 30_000)
        var broken = open
        Self.push(&open, at: 2, now: 50_000)
        #expect(open.addresses[0].cause == .notAcknowledged)
        broken.streamEnded(now: 40_000)
        Self.push(&broken, at: 2, now: 60_000)
        #expect(broken.addresses[0].cause == .streamEnded)
        // The change comes after the end of the stream: in its grace period, and later.
        attempts.streamEnded(now: 30_000)
        var late = attempts
        attempts.changed(at: 2, urgency: .normal, now: 49_000)
        Self.push(&attempts, at: 2, now: 50_000)
        #expect(attempts.addresses[0].cause == .streamEnded)
        late.changed(at: 2, urgency: .normal, now: 51_000)
        Self.push(&late, at: 2, now: 51_000)
        #expect(late.addresses[0].cause == .noStream)
    }

    @Test func `a repeated push and one that a person requested say so`() {
        var attempts = Self.attempts()
        attempts.polled()
        attempts.changed(at: 1, urgency: .normal, now: 0)
        Self.push(&attempts, at: 1, now: 0)
        Self.push(&attempts, at: 1, now: DeliveryAttempts.repeatWaits[0])
        #expect(attempts.addresses[0].cause == .repeated)
        attempts.resent(1, at: 2, since: 0, now: DeliveryAttempts.repeatWaits[0])
        #expect(attempts.addresses[0].cause == .manual)
    }

    @Test func `a spread push waits for its turn unless something urgent comes`() {
        var attempts = Self.attempts()
        attempts.changed(at: 1, urgency: .low, delay: 9_000, now: 0)
        #expect(attempts.next(now: 0) == .wait(until: 9_000) && attempts.urgency == .low)
        attempts.changed(at: 2, urgency: .veryLow, delay: 60_000, now: 1_000)
        #expect(attempts.next(now: 1_000) == .wait(until: 9_000) && attempts.urgency == .low)
        attempts.changed(at: 3, urgency: .high, now: 2_000)
        #expect(attempts.next(now: 2_000) == .push(address: 1) && attempts.urgency == .high)
        attempts.began(1, at: 3, since: 0)
        attempts.delivered(1, now: 2_000)
        attempts.changed(at: 4, urgency: .low, delay: 9_000, now: 3_000)
        #expect(attempts.next(now: 3_000) == .wait(until: 12_000) && attempts.urgency == .low)
    }

    @Test func `what the budget withholds is asked for again when more is stale`() {
        var attempts = Self.attempts()
        attempts.changed(at: 1, urgency: .normal, now: 0)
        attempts.withheld(1, until: 60_000)
        #expect(attempts.next(now: 0) == .wait(until: 60_000))
        #expect(attempts.next(now: 60_000) == .push(address: 1))
        attempts.changed(at: 2, urgency: .high, now: 1)
        #expect(attempts.next(now: 1) == .push(address: 1))
    }

    @Test func `nothing is pushed of which nothing is stale any more`() {
        var attempts = Self.attempts()
        attempts.polled()
        attempts.changed(at: 5, urgency: .normal, now: 0)
        attempts.nothingIsStale(at: 6)
        #expect(attempts.next(now: .max) == .rest && attempts.confirmed == 0)
        attempts.register([1, 2])
        #expect(attempts.next(now: .max) == .rest)
        attempts.changed(at: 7, urgency: .normal, now: 0)
        #expect(attempts.next(now: 0) == .push(address: 1))
        attempts.nothingIsStale(at: 7)
        attempts.forgetPositions(head: 3, now: 0)
        #expect(attempts.next(now: 0) == .push(address: 1))
    }

    @Test func `a client known to answer is pushed three times more, ever more rarely`() {
        for answers in [false, true] {
            var attempts = Self.attempts()
            if answers { attempts.polled() }
            attempts.changed(at: 5, urgency: .normal, now: 0)
            Self.push(&attempts, at: 5, now: 0)
            var now: Int64 = 0
            var waits: [Int64] = []
            while waits.count < 10, case .wait(let until) = attempts.next(now: now) {
                waits.append(until - now)
                now = until
                Self.push(&attempts, at: 5, now: now)
            }
            #expect(waits == (answers ? DeliveryAttempts.repeatWaits : []))
        }
    }

    @Test func `a client that was heard of is pushed as often again for what comes next`() {
        var attempts = Self.attempts()
        var counts: [Int] = []
        for sequence in 1...2 as ClosedRange<UInt64> {
            attempts.polled()
            attempts.changed(at: sequence, urgency: .normal, now: 0)
            Self.push(&attempts, at: sequence, now: 0)
            counts.append(0)
            var now: Int64 = 0
            while counts[counts.count - 1] < 10, case .wait(let until) = attempts.next(now: now) {
                now = until
                Self.push(&attempts, at: sequence, now: now)
                counts[counts.count - 1] += 1
            }
        }
        #expect(counts == [3, 3])
    }

    @Test func `an address that fails waits, and after three times the next is asked as well`() {
        var attempts = Self.attempts([1, 2])
        attempts.changed(at: 5, urgency: .normal, now: 0)
        for failure in 1...3 as ClosedRange<Int64> {
            #expect(attempts.next(now: failure * 1_000) == .push(address: 1))
            attempts.began(1, at: 5, since: 0)
            attempts.failed(1, until: (failure + 1) * 1_000)
            #expect(
                attempts.next(now: failure * 1_000)
                    == (failure < 3 ? .wait(until: (failure + 1) * 1_000) : .push(address: 2)))
        }
        attempts.began(2, at: 5, since: 0)
        attempts.delivered(2, now: 3_000)
        // Each address has a cursor of its own, so the first is still tried.
        #expect(attempts.next(now: 3_000) == .wait(until: 4_000))
        Self.push(&attempts, at: 5, now: 4_000)
        #expect(attempts.next(now: .max) == .rest)
    }

    @Test func `an address that keeps failing does not hold up the next while it is tried`() {
        var attempts = Self.attempts([1, 2])
        attempts.changed(at: 5, urgency: .normal, now: 0)
        for _ in 0..<2 {
            attempts.began(1, at: 5, since: 0)
            #expect(attempts.next(now: 0) == .rest)
            attempts.failed(1, until: 0)
        }
        attempts.began(1, at: 5, since: 0)
        attempts.failed(1, until: 0)
        attempts.began(1, at: 5, since: 0)
        #expect(attempts.next(now: 0) == .push(address: 2))
    }

    @Test func `a client that no push brings to answer is told at its next address`() {
        var attempts = Self.attempts([1, 2])
        attempts.polled()
        attempts.changed(at: 5, urgency: .normal, now: 0)
        Self.push(&attempts, at: 5, now: 0)
        var now: Int64 = 0
        for _ in 0..<3 {
            guard case .wait(let until) = attempts.next(now: now) else { break }
            now = until
            Self.push(&attempts, at: 5, now: now)
        }
        #expect(attempts.next(now: now) == .push(address: 2))
    }

    @Test func `a repeat that is refused for good is the last and leaves it to the next`() {
        var attempts = Self.attempts([1, 2])
        attempts.polled()
        attempts.changed(at: 5, urgency: .normal, now: 0)
        Self.push(&attempts, at: 5, now: 0)
        #expect(attempts.next(now: 300_000) == .push(address: 1))
        attempts.began(1, at: 5, since: 0)
        attempts.gaveUp(1)
        #expect(attempts.next(now: 300_000) == .push(address: 2))
    }

    @Test func `another token is another address and the rest keep what is known of them`() {
        var attempts = Self.attempts([1, 2])
        attempts.changed(at: 5, urgency: .normal, now: 0)
        Self.push(&attempts, at: 5, now: 0)
        attempts.register([2, 1])
        #expect(attempts.addresses.map(\.delivered) == [4, 5])
        attempts.register([3])
        #expect(attempts.next(now: 1) == .push(address: 3))
        // The outcome of a push to a removed address has no effect.
        attempts.delivered(1, now: 1)
        attempts.register([])
        #expect(attempts.next(now: 1) == .rest && attempts.isOwed)
    }

    @Test func `a cursor moves with the log while nothing is owed, and stops when something is`() {
        var attempts = Self.attempts([1, 2])
        attempts.changed(at: 50, urgency: .normal, now: 0)
        #expect(attempts.isUnreported && attempts.reported == 49 && attempts.unsaid(at: 1) == 49)
        attempts.changed(at: 70, urgency: .normal, now: 0)
        #expect(attempts.isUnreported && attempts.reported == 49 && attempts.unsaid(at: 1) == 49)
        Self.push(&attempts, at: 75, now: 0)
        #expect(!attempts.isUnreported)
        // The client does not confirm. All the same, the next push tells only what is new, also at
        // the next address, once the first has had the time to arrive.
        attempts.changed(at: 90, urgency: .normal, now: DeliveryAttempts.repeatWaits[0])
        #expect(attempts.addresses.map { attempts.unsaid(at: $0.id) } == [89, 89])
    }

    @Test func `what may not have arrived goes to another token too, for five minutes`() {
        var attempts = Self.attempts()
        attempts.changed(at: 5, urgency: .normal, now: 0)
        Self.push(&attempts, at: 5, now: 0)
        var late = attempts
        var polled = attempts
        attempts.register([2], now: 299_999)
        #expect(attempts.next(now: 299_999) == .push(address: 2))
        late.register([2], now: 300_000)
        #expect(late.next(now: .max) == .rest)
        polled.polled()
        polled.register([2], now: 1)
        #expect(polled.next(now: .max) == .rest)
    }

    @Test func `a repeated push says what those before it said, and nothing older`() {
        var attempts = Self.attempts()
        attempts.polled()
        for sequence in [5, 9] as [UInt64] {
            attempts.changed(at: sequence, urgency: .normal, now: 0)
            #expect(attempts.next(now: 0) == .push(address: 1))
            attempts.began(1, at: sequence, since: attempts.unsaid(at: 1))
            attempts.delivered(1, now: 0)
        }
        #expect(attempts.next(now: 300_000) == .push(address: 1) && attempts.unsaid(at: 1) == 4)
        attempts.polled()
        attempts.changed(at: 12, urgency: .normal, now: 0)
        attempts.began(1, at: 12, since: attempts.unsaid(at: 1))
        attempts.delivered(1, now: 0)
        #expect(attempts.next(now: 300_000) == .push(address: 1) && attempts.unsaid(at: 1) == 11)
    }

    @Test func `the time to confirm begins when the id of the stream has passed the change`() {
        var attempts = Self.attempts()
        attempts.streamOpened(resuming: 4, now: -50_000)
        attempts.changed(at: 5, urgency: .normal, sentUpTo: 3, now: 0)
        for now in stride(from: 0 as Int64, to: 60_000, by: 5_000) {
            #expect(attempts.next(now: now) == .wait(until: now + 5_000))
            attempts.streamsSent(upTo: 4, now: now + 5_000)
        }
        attempts.streamsSent(upTo: 5, now: 60_000)
        #expect(attempts.next(now: 60_000) == .wait(until: 80_000))
        attempts.streamsSent(upTo: 6, now: 70_000)
        #expect(attempts.next(now: 80_000) == .push(address: 1))
    }

    @Test func `a push that makes no client answer is not repeated`() {
        var attempts = Self.attempts()
        attempts.polled()
        attempts.changed(at: 5, urgency: .normal, now: 0)
        attempts.began(1, at: 5, since: 0)
        attempts.delivered(1, now: 0, awaits: false)
        #expect(attempts.isOwed && attempts.next(now: .max) == .rest)
        attempts.changed(at: 6, urgency: .normal, now: 1)
        #expect(attempts.next(now: 1) == .push(address: 1) && attempts.unsaid(at: 1) == 5)
    }

    @Test func `to what ended nothing is pushed, whatever is registered or configured`() throws {
        var attempts = Self.attempts()
        attempts.changed(at: 5, urgency: .normal, now: 0)
        attempts.began(1, at: 5, since: 0)
        attempts.delivered(1, now: 0, awaits: false, ends: true)
        attempts.register([1])
        attempts.setUsable(1, false)
        let isMended = attempts.mended(1)
        #expect(isMended)
        attempts.setUsable(1, true)
        attempts.setConfigured(1, false)
        attempts.setConfigured(1, true)
        attempts.askAgain()
        attempts.forgetPositions(head: 3, now: 1)
        attempts = try DeliveryAttempts(
            attempts.saved(.timelines, now: 1, wall: 0), now: 1, wall: 0)
        attempts.changed(at: 9, urgency: .high, now: 1)
        #expect(attempts.isOwed && attempts.next(now: .max) == .rest)
        // Another token is of another activity.
        attempts.register([2, 1])
        #expect(attempts.addresses.map(\.hasEnded) == [false, true])
        #expect(attempts.next(now: 1) == .push(address: 2))
    }

    @Test func `timestamps rise, also if the clock is set back or the program restarts`() throws {
        var attempts = Self.attempts()
        var stamps: [Int64] = []
        for second in [100, 100, 250, 90, 251, .max, .min] as [Int64] {
            stamps.append(attempts.stamped(wall: second))
            attempts = try DeliveryAttempts(
                attempts.saved(.timelines, now: 0, wall: 0), now: 0, wall: 0)
        }
        #expect(stamps == [100, 161, 250, 311, 372, .max, .max])
        // What is never pushed with a timestamp gets none.
        let other = Self.attempts().saved(.timelines, now: 0, wall: 0)
        #expect(try DeliveryAttempts(other, now: 0, wall: 0).stamp == 0)
    }

    @Test func `a lost tail makes everything owed again`() {
        var attempts = Self.attempts()
        attempts.changed(at: 50, urgency: .normal, now: 0)
        Self.push(&attempts, at: 50, now: 0)
        attempts.acknowledged(50)
        attempts.forgetPositions(head: 40, now: 1)
        #expect(attempts.isOwed && attempts.next(now: 1) == .push(address: 1))
    }

    @Test func `after a restart who had a stream has time to return, and all goes again`() throws {
        var attempts = Self.attempts()
        attempts.streamOpened(resuming: 1, now: -50_000)
        attempts.changed(at: 5, urgency: .high, now: 0)
        attempts.began(1, at: 5, since: 0)
        let read = try DeliveryAttempts(
            attempts.saved(.timelines, now: 0, wall: 99), now: 1_000, wall: 99)
        #expect(read.next(now: 1_000) == .wait(until: 21_000))
        #expect(read.next(now: 21_000) == .push(address: 1) && read.urgency == .high)
    }

    @Test(arguments: [
        (0 as Int64, 600_000 as Int64), (500_000, 100_000), (-500_000, 600_000),
        (.max, 0), (.min, 600_000),
    ])
    func `of a clock that was set a wait keeps between all and nothing`(
        jump: Int64, left: Int64
    ) throws {
        var attempts = Self.attempts()
        attempts.changed(at: 5, urgency: .normal, now: 0)
        attempts.began(1, at: 5, since: 0)
        attempts.failed(1, until: 600_000)
        let read = try DeliveryAttempts(
            attempts.saved(.timelines, now: 0, wall: 0), now: 0, wall: jump)
        #expect(read.next(now: 0) == (left > 0 ? .wait(until: left) : .push(address: 1)))
    }
}
