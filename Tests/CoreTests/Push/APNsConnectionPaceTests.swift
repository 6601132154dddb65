import Testing

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
