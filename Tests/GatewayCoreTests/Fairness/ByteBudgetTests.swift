import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct ByteBudgetTests {
    private typealias Budget = ByteBudget<String, Int>

    @Test func `one key gets four fifths and the last to come finds room`() {
        var budget = Budget(limit: 100, waitingMax: 10)
        for number in 1...8 { #expect(budget.reserve(10, for: "greedy", number) == .granted) }
        #expect(budget.reserve(10, for: "greedy", 9) == .waits(id: 1))
        #expect(budget.reserve(20, for: "other", 10) == .granted)
        #expect(budget.used == 100)
        #expect(budget.release(20, for: "other") == [])
        #expect(budget.release(10, for: "greedy") == [9])
    }

    @Test func `a body above the budget is taken alone`() {
        var budget = Budget(limit: 100, waitingMax: 10)
        #expect(budget.reserve(1_000, for: "a", 1) == .granted)
        #expect(budget.reserve(1, for: "b", 2) == .waits(id: 1))
        #expect(budget.release(1_000, for: "a") == [2])
        #expect(budget.reserve(1_000, for: "a", 3) == .waits(id: 2))
        #expect(budget.release(1, for: "b") == [3])
    }

    @Test func `who holds a part is never made to wait`() {
        var budget = Budget(limit: 100, waitingMax: 10)
        #expect(budget.reserve(40, for: "a", 1) == .granted)
        #expect(budget.extend(by: 40, for: "a") == true)
        #expect(budget.extend(by: 40, for: "a") == false)
    }

    @Test func `a waiter that is taken back lets those behind it pass`() {
        var budget = Budget(limit: 100, waitingMax: 10)
        #expect(budget.reserve(60, for: "a", 1) == .granted)
        #expect(budget.reserve(90, for: "a", 2) == .waits(id: 1))
        #expect(budget.reserve(10, for: "a", 3) == .waits(id: 2))
        let (waiter, granted) = budget.cancel(1, of: "a")
        #expect(waiter == 2 && granted == [3])
        #expect(budget.cancel(1, of: "a").waiter == nil)
    }

    /// Compares random reservations with plain bookkeeping: they never exceed the limit, keep the
    /// order for each key, and leave none waiting once all bytes are given back.
    @Test(arguments: 0..<50)
    func `random work never exceeds the budget and never gets stuck`(seed: Int) {
        var random = SplitMix64(seed: UInt64(seed))
        let limit = random.pick([10, 100, 1_000])
        let keys = (0..<random.pick([1, 2, 7])).map { "app \($0)" }
        var budget = Budget(limit: limit, waitingMax: random.pick([0, 5, 100]))
        var sizes: [Int: (key: String, bytes: Int, id: UInt64)] = [:]
        var holding: [Int] = []
        var waiting: [Int] = []
        func granted(_ numbers: [Int]) {
            for number in numbers {
                let key = sizes[number]?.key
                #expect(waiting.first { sizes[$0]?.key == key } == number)
                waiting.removeAll { $0 == number }
                holding.append(number)
            }
        }
        for number in 0..<2_000 {
            switch random.below(5) {
            case 0, 1:
                let key = random.pick(keys)
                let bytes = random.below(limit) + 1
                sizes[number] = (key, bytes, 0)
                switch budget.reserve(bytes, for: key, number) {
                case .granted: holding.append(number)
                case .waits(let id):
                    sizes[number]?.id = id
                    waiting.append(number)
                case .refused: break
                }
            case 2, 3:
                guard !holding.isEmpty else { continue }
                let number = holding.remove(at: random.below(holding.count))
                if let one = sizes[number] { granted(budget.release(one.bytes, for: one.key)) }
            default:
                guard !waiting.isEmpty else { continue }
                let number = waiting.remove(at: random.below(waiting.count))
                guard let one = sizes[number] else { continue }
                let (waiter, others) = budget.cancel(one.id, of: one.key)
                #expect(waiter == number)
                granted(others)
            }
            #expect(budget.used == holding.reduce(0) { $0 + (sizes[$1]?.bytes ?? 0) })
            #expect(budget.used <= limit)
            #expect(budget.waitingCount == waiting.count)
        }
        while let number = holding.popLast() {
            if let one = sizes[number] { granted(budget.release(one.bytes, for: one.key)) }
        }
        #expect(waiting.isEmpty && budget.used == 0)
    }
}
