import Testing
import WidgetModel

@testable import TimelineClient

@Suite struct ReloadEnginePropertyTests {
    @Test(arguments: 0..<24)
    func nothingIsMissedClaimedTooEarlyOrBuiltUnasked(block: UInt64) {
        var builds = 0
        var restarts = 0
        for seed in (block * 5)..<(block * 5 + 5) {
            var world = EngineWorld(seed: seed)
            for _ in 0..<250 { world.step(faults: true) }
            world.settle()
            #expect(world.violations.isEmpty, "seed \(seed): \(world.violations.first ?? "")")
            #expect(world.outdated.isEmpty, "seed \(seed)")
            #expect(world.engine.isSettled, "seed \(seed)")
            builds += world.builds
            restarts += world.restarts
        }
        // A world in which nothing happens would prove nothing.
        #expect(builds > 100)
        #expect(restarts > 5)
    }

    @Test func equalEventsGiveEqualOrders() {
        var one = EngineWorld(seed: 7)
        var other = EngineWorld(seed: 7)
        for _ in 0..<300 {
            one.step(faults: true)
            other.step(faults: true)
        }
        #expect(one.engine.state == other.engine.state)
        #expect(one.pending == other.pending)
    }
}
