import Foundation
import Testing

@testable import TimelineClient

@Suite struct ReloadSchedulerPropertyTests {
    @Test(arguments: 0..<20)
    func itReloadsWhatIsAskedForWhenTheRulesAllowItAndNothingElse(block: UInt64) {
        var reloads = 0
        var withheld = 0
        for seed in (block * 6)..<(block * 6 + 6) {
            var world = ReloadSchedulerFixture(seed: seed)
            for _ in 0..<1000 { world.step() }
            world.settle()
            #expect(world.violations.first == nil, "seed \(seed)")
            reloads += world.reloads
            withheld += world.withheld
        }
        // A world without events, or one in which nothing has to wait, would prove nothing.
        #expect(reloads > 100)
        #expect(withheld > 100)
    }

    @Test func equalRequestsGiveEqualAnswers() {
        var one = ReloadSchedulerFixture(seed: 3)
        var other = ReloadSchedulerFixture(seed: 3)
        for _ in 0..<500 {
            one.step()
            other.step()
            #expect(one.scheduler == other.scheduler)
        }
    }
}
