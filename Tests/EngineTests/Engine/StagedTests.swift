import Testing
import WidgetModel

@testable import GatewayEngine

@Suite struct StagedTests {
    @Test func `a failed transaction takes back all its changes`() {
        var staged = Staged([0])
        staged.change(at: 5) { $0.append(5) }
        staged.change(at: 7) { $0.append(7) }
        staged.rollBack(before: 8)
        #expect(staged.value == [0, 5, 7])
        staged.rollBack(before: 5)
        #expect(staged.value == [0])
        staged.rollBack(before: 5)
        #expect(staged.value == [0])
    }

    @Test func `what is on disk stays, whatever fails later`() {
        var staged = Staged([0])
        staged.change(at: 5) { $0.append(5) }
        staged.commit(5)
        staged.change(at: 6) { $0.append(6) }
        staged.rollBack(before: 6)
        #expect(staged.value == [0, 5])
    }

    @Test func `a transaction that began before the change gives it up`() {
        var staged = Staged([0])
        staged.change(at: 5) { $0.append(5) }
        staged.rollBack(before: 3)
        #expect(staged.value == [0])
    }

    /// Runs transactions of several entries, which may each change the value and which are
    /// committed or fail as a whole, and compares with a model that keeps the changes of committed
    /// ones only.
    @Test(arguments: 0..<50)
    func `it is as the committed transactions leave it`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var staged = Staged([UInt64]())
        var committed: [UInt64] = []
        var head: UInt64 = 0
        for _ in 0..<200 {
            var (next, changes) = (head + 1, [UInt64]())
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                staged.rollBack(before: next)
                #expect(staged.value == committed + changes)
                if Bool.random(using: &random) {
                    staged.change(at: next) { [next] in $0.append(next) }
                    changes.append(next)
                }
                next += 1
            }
            if Int.random(in: 0..<3, using: &random) > 0 {
                for sequence in changes { staged.commit(sequence) }
                committed += changes
                head = next - 1
            }
        }
    }
}
