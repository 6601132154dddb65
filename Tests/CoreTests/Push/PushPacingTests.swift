import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct APNsConnectionPaceTests {
    @Test func `openings that no answer follows come ever more rarely`() {
        var pace = APNsConnectionPace()
        var openings: [Int64] = []
        for second in 0..<3_600 where pace.open(now: Int64(second) * 1_000, random: 0) {
            openings.append(Int64(second))
        }
        #expect(openings.prefix(6) == [0, 1, 3, 7, 15, 31])
        #expect(zip(openings, openings.dropFirst()).allSatisfy { $1 - $0 <= 300 })
        #expect(openings.count < 25)
    }

    @Test func `an answer makes the next opening soon, though never sooner than the least`() {
        var pace = APNsConnectionPace()
        let opened = pace.open(now: 0, random: .max)
        pace.answered()
        let again = [pace.open(now: 999, random: 0), pace.open(now: 1_250, random: 0)]
        #expect(opened && again == [false, true])
        #expect(pace.nextOpening == 2_250)
    }

    @Test func `an opening at the end of time does not overflow`() {
        var pace = APNsConnectionPace()
        let opened = pace.open(now: .max, random: .max)
        #expect(opened && pace.nextOpening == .max)
    }

    @Test func `a connection carries one request until one succeeded`() {
        func most(_ announced: Int?, _ hasSucceeded: Bool) -> Int {
            APNsConnectionPace.requestsMax(
                announced: announced, hasSucceeded: hasSucceeded, limit: 500)
        }
        #expect(most(nil, false) == 1 && most(1_000, false) == 1 && most(0, false) == 0)
        #expect(most(nil, true) == 500 && most(1_000, true) == 500 && most(100, true) == 100)
        #expect(most(-1, true) == 0 && most(-1, false) == 0)
    }
}

@Suite struct APNsWaitTests {
    @Test func `the first retry after a service error waits a quarter of an hour`() {
        for urgency in [Urgency.veryLow, .low, .normal] {
            let wait = APNsWait.service.milliseconds(failures: 0, urgency: urgency, random: 0)
            #expect(wait == 900_000)
        }
        #expect(APNsWait.service.milliseconds(failures: 0, urgency: .high, random: 0) == 60_000)
    }

    @Test func `a wait doubles, is bounded, and gets at most a quarter more`() {
        for wait in [APNsWait.atOnce, .connection, .device, .service, .requested(30), .shared(30)] {
            for urgency in Urgency.allCases {
                var last: Int64 = 0
                for failures in -1...100 {
                    func milliseconds(_ random: UInt64) -> Int64 {
                        wait.milliseconds(failures: failures, urgency: urgency, random: random)
                    }
                    let least = milliseconds(0)
                    #expect(least >= last && (failures < 1 || least <= 2 * last))
                    #expect(least <= 14_400_000)
                    for random in [1, 77, UInt64.max / 2, .max] {
                        #expect((least...least + least / 4).contains(milliseconds(random)))
                    }
                    last = least
                }
                #expect((last == 0) == (wait == .atOnce))
            }
        }
    }
}

@Suite struct ProviderTokenAgeTests {
    static let minute: Int64 = 60_000

    @Test func `a token is minted once and used for fifty-five minutes`() {
        var age = ProviderTokenAge()
        #expect(age.token(now: 0, wall: 0) == nil)
        let token = age.minted(now: 0, wall: 0)
        for minute in 0..<55 as Range<Int64> {
            #expect(age.token(now: minute * Self.minute, wall: minute * Self.minute) == token)
        }
        #expect(age.token(now: 55 * Self.minute, wall: 55 * Self.minute) == nil)
        let next = age.minted(now: 55 * Self.minute, wall: 55 * Self.minute)
        #expect(next.number == 2)
        #expect(age.token(now: 56 * Self.minute, wall: 56 * Self.minute) == next)
    }

    @Test(arguments: [(54 as Int64, true), (55, false), (-1, true), (-2, false)])
    func `a token whose own time does not fit the clock any more is replaced`(
        wall: Int64, isFit: Bool
    ) {
        var age = ProviderTokenAge()
        let token = age.minted(now: 0, wall: 0)
        #expect(age.token(now: 1, wall: wall * Self.minute) == (isFit ? token : nil))
    }

    @Test func `of many pushes that hear it expired the first mints and the rest follow`() {
        var age = ProviderTokenAge()
        let token = age.minted(now: 0, wall: 0)
        let now = 20 * Self.minute
        #expect(age.expired(token, now: now, wall: now) == .mint)
        let next = age.minted(now: now, wall: now)
        #expect(age.expired(token, now: now + 1, wall: now + 1) == .useCurrent)
        // A new token that is refused too is not replaced by a third.
        #expect(age.expired(next, now: now + 1, wall: now + 1) == .clockIsWrong)
    }

    @Test func `a young token that expired tells of a wrong clock`() {
        var age = ProviderTokenAge()
        let token = age.minted(now: 0, wall: 0)
        let now = 20 * Self.minute - 1
        #expect(age.expired(token, now: now, wall: now) == .clockIsWrong)
        // The clock was corrected meanwhile, so another token will do.
        #expect(age.expired(token, now: now, wall: now + 90 * Self.minute) == .mint)
    }

    @Test func `a token refused as too soon gives way to the older while that is of use`() {
        var age = ProviderTokenAge()
        let first = age.minted(now: 0, wall: 0)
        age.refusedAsTooSoon(first)
        #expect(age.token(now: 0, wall: 0) == first)
        let second = age.minted(now: 10 * Self.minute, wall: 10 * Self.minute)
        age.refusedAsTooSoon(first)
        #expect(age.token(now: 11 * Self.minute, wall: 11 * Self.minute) == second)
        age.refusedAsTooSoon(second)
        #expect(age.token(now: 54 * Self.minute, wall: 54 * Self.minute) == first)
        #expect(age.token(now: 55 * Self.minute, wall: 55 * Self.minute) == second)
        #expect(age.token(now: 65 * Self.minute, wall: 65 * Self.minute) == nil)
    }
}

extension ProviderTokenAge {
    /// Records a token that is created now.
    fileprivate mutating func minted(now: Int64, wall: Int64) -> Token {
        adopted(issuedAt: wall, now: now, wall: wall)
    }
}

@Suite struct PushSpreadTests {
    static let spread = PushSpread(.init(), hash: SipHash(1, 2))

    @Test func `what is urgent, and what concerns few, is not delayed`() {
        for device in 0..<1_000 as Range<UInt64> {
            for urgency in Urgency.allCases {
                let devices = urgency == .high ? Int.max : 1_000
                let delay = Self.spread.delay(
                    device: device, sequence: 7, devices: devices, urgency: urgency)
                #expect(delay == 0)
            }
        }
    }

    @Test func `the span grows with the devices up to the window`() {
        func span(_ devices: Int, _ urgency: Urgency) -> Int64 {
            Self.spread.span(devices: devices, urgency: urgency)
        }
        #expect(span(1_001, .low) == 2_000 && span(1_001, .normal) == 2_000)
        #expect(span(30_000, .veryLow) == 30_000 && span(30_000, .normal) == 30_000)
        #expect(span(1_000_000, .low) == 900_000 && span(1_000_000, .normal) == 60_000)
        #expect(span(.max, .low) == 900_000 && span(0, .low) == 0 && span(-1, .low) == 0)
    }

    @Test(arguments: [Urgency.low, .normal])
    func `a million devices are woken evenly over the window`(urgency: Urgency) {
        let devices = 1_000_000
        let span = Self.spread.span(devices: devices, urgency: urgency)
        var woken = Array(repeating: 0, count: Int(span / 1_000))
        // Every tenth device is enough to see how even the distribution is.
        for device in stride(from: 0, to: UInt64(devices), by: 10) {
            let delay = Self.spread.delay(
                device: device, sequence: 7, devices: devices, urgency: urgency)
            guard (0..<span).contains(delay) else {
                Issue.record("\(delay) is not within \(span)")
                return
            }
            woken[Int(delay / 1_000)] += 10
        }
        let even = devices / woken.count
        #expect(woken.allSatisfy { $0 > even / 2 && $0 < even * 2 })
    }

    @Test func `a delay repeats itself, and another change has another order`() {
        func delays(_ spread: PushSpread, _ sequence: UInt64) -> [Int64] {
            (0..<100).map {
                spread.delay(device: $0, sequence: sequence, devices: 100_000, urgency: .low)
            }
        }
        let again = PushSpread(.init(), hash: SipHash(1, 2))
        #expect(delays(Self.spread, 7) == delays(again, 7))
        #expect(delays(Self.spread, 7) != delays(Self.spread, 8))
    }

    @Test func `terms out of range count as the nearest in it`() {
        let terms = PushSpread.Terms(devicesPerSecond: 0, window: .max, windowOfNormal: .max)
        #expect(terms.devicesPerSecond == 1 && terms.window == 86_400_000)
        #expect(terms.windowOfNormal == terms.window)
        let none = PushSpread.Terms(devicesPerSecond: -1, window: -1, windowOfNormal: 5)
        let spread = PushSpread(none, hash: SipHash(1, 2))
        #expect(spread.delay(device: 1, sequence: 1, devices: 9, urgency: .low) == 0)
    }
}

@Suite struct FailingAddressesTests {
    @Test func `only changes are told`() {
        var addresses = FailingAddresses<String>()
        var changes: [FailingAddresses<String>.Change?] = []
        for isSent in [true, false, false, true, true, false, true] {
            changes.append(addresses.ended(at: "a", isSent: isSent))
        }
        #expect(changes == [nil, .fails, nil, .worksAgain, nil, .fails, .worksAgain])
        #expect(addresses.count == 0)
    }

    @Test func `the number of addresses is limited, and a new one is always reported`() {
        var addresses = FailingAddresses<Int>(addressesMax: 3)
        for address in 0..<10 {
            let change = addresses.ended(at: address, isSent: false)
            #expect(change == .fails)
            #expect(addresses.count <= 3)
        }
        let last = addresses.ended(at: 9, isSent: true)
        #expect(last == .worksAgain)
    }
}
