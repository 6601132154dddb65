import Testing
import WidgetModel

@testable import TimelineClient

@Suite struct ReloadEnginePropertyTests {
    @Test(arguments: 0..<12)
    func nothingIsMissedClaimedTooEarlyOrBuiltUnasked(block: UInt64) {
        var builds = 0
        var restarts = 0
        var counted = 0
        var withheld = 0
        var spared = 0
        var resumed = 0
        var cardsTold = 0
        for seed in (block * 10)..<(block * 10 + 10) {
            var world = EngineFixture(seed: seed)
            for _ in 0..<250 { world.step(faults: true) }
            world.settle()
            #expect(world.violations.isEmpty, "seed \(seed): \(world.violations.first ?? "")")
            let accounts = world.accounts
            #expect(accounts.violations.isEmpty, "seed \(seed): \(accounts.violations.first ?? "")")
            #expect(world.outdated.isEmpty, "seed \(seed)")
            #expect(world.engine.isSettled, "seed \(seed)")
            builds += world.builds
            restarts += world.restarts
            counted += accounts.counted
            withheld += accounts.withheld
            spared += world.spared
            resumed += accounts.resumed
            cardsTold += world.cardsTold
        }
        // A world without events would prove nothing.
        #expect(builds > 200)
        #expect(restarts > 10)
        #expect(counted > 100)
        #expect(withheld > 0)
        #expect(spared > 0)
        #expect(resumed > 0)
        #expect(cardsTold > 0)
    }

    @Test func equalEventsGiveEqualOrders() {
        var one = EngineFixture(seed: 7)
        var other = EngineFixture(seed: 7)
        for _ in 0..<300 {
            one.step(faults: true)
            other.step(faults: true)
        }
        #expect(one.engine.state == other.engine.state)
        #expect(one.pending == other.pending)
    }
}
