import Testing
import WidgetModel

@testable import GatewayCore

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
