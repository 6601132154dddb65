import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct APNsWaitTests {
    @Test func `the first retry after a service error waits a quarter of an hour`() {
        for urgency in [Urgency.veryLow, .low, .normal] {
            let wait = APNsWait.service.milliseconds(failures: 0, urgency: urgency, random: 0)
            #expect(wait == 900_000)
        }
        #expect(APNsWait.service.milliseconds(failures: 0, urgency: .high, random: 0) == 60_000)
    }

    @Test func `a wait doubles, is bounded, and gets at most a quarter more`() {
        for wait in APNsWait.allCases {
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
