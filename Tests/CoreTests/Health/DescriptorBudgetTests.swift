import GatewayCore
import Testing
import WidgetModel

struct DescriptorBudgetTests {
    private let needs = DescriptorBudget.Needs(
        threads: 2, operatorPorts: [64, 64], webhooks: 256, apnsApps: 1)

    @Test func enoughDescriptorsLeaveEverythingAsItIsWanted() throws {
        let budget = try #require(
            DescriptorBudget(limit: 524_288, connections: 100_000, needs: needs))
        #expect(budget.connections == 100_000)
        #expect(budget.operatorPorts == [64, 64])
        #expect(budget.webhooks == 256)
    }

    @Test func fewDescriptorsLowerConnectionsAndNeverTheReserve() throws {
        let budget = try #require(
            DescriptorBudget(limit: 1_024, connections: 100_000, needs: needs))
        #expect(budget.webhooks == 128)
        #expect(budget.reserve == 64 + 20 + 128 + 128 + 28)
        #expect(budget.connections == 1_024 - budget.reserve)
    }

    /// Whatever the numbers are, all parts together fit, and no part gets more than it wanted.
    @Test(arguments: 0..<10 as Range<UInt64>) func thePartsFitTheWhole(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<2_000 {
            let needs = DescriptorBudget.Needs(
                threads: .random(in: 1...64, using: &random),
                operatorPorts: (0..<Int.random(in: 0...3, using: &random)).map { _ in
                    .random(in: 1...256, using: &random)
                }, webhooks: .random(in: 0...256, using: &random),
                apnsApps: .random(in: 0...20, using: &random))
            let limit = Int.random(in: 0...5_000, using: &random)
            let wanted = Int.random(in: 1...5_000, using: &random)
            guard let budget = DescriptorBudget(limit: limit, connections: wanted, needs: needs)
            else {
                #expect(limit < 64 + 640 + 768 + 256 + 560 + 16)
                continue
            }
            #expect(budget.connections + budget.reserve <= limit)
            #expect(budget.connections >= min(wanted, DescriptorBudget.connectionsMin))
            #expect(budget.connections <= wanted && budget.webhooks <= needs.webhooks)
            #expect(zip(budget.operatorPorts, needs.operatorPorts).allSatisfy { $0 <= $1 })
            #expect(budget.reserve >= 64)
        }
    }

    @Test func tooFewAreRefused() {
        #expect(DescriptorBudget(limit: 100, connections: 100_000, needs: needs) == nil)
        #expect(DescriptorBudget(limit: 0, connections: 1, needs: needs) == nil)
    }
}
