import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct ByteBudgetTests {
    private typealias Budget = ByteBudget<String, Int>

    /// Stands for a body.
    private final class Body: Sendable {}

    private let bodies = (0..<2_000).map { _ in Body() }

    private func body(_ number: Int) -> ObjectIdentifier { ObjectIdentifier(bodies[number]) }

    /// The ticket of a reservation that waits.
    private func ticket(_ outcome: Budget.Outcome) throws -> Budget.Ticket {
        guard case .waits(let ticket) = outcome else { throw TestFailure("\(outcome)") }
        return ticket
    }

    @Test func `one key gets four fifths and the last to come finds room`() throws {
        var budget = Budget(limit: 100, waitingMax: 10, smallMax: 50)
        func begin(_ bytes: Int, _ key: String, _ number: Int) -> Budget.Outcome {
            budget.reserve(bytes, for: key, body: body(number), holding: 0, number)
        }
        for number in 1...8 { #expect(begin(10, "greedy", number) == .granted) }
        _ = try ticket(begin(10, "greedy", 9))
        #expect(begin(20, "other", 10) == .granted)
        #expect(budget.used == 100)
        #expect(budget.release(20, for: "other", body: body(10)) == [])
        #expect(budget.release(10, for: "greedy", body: body(1)) == [9])
    }

    @Test func `a body above the budget is taken alone`() throws {
        var budget = Budget(limit: 100, waitingMax: 10, smallMax: 50)
        func begin(_ bytes: Int, _ key: String, _ number: Int) -> Budget.Outcome {
            budget.reserve(bytes, for: key, body: body(number), holding: 0, number)
        }
        #expect(begin(1_000, "a", 1) == .granted)
        _ = try ticket(begin(1, "b", 2))
        #expect(budget.release(1_000, for: "a", body: body(1)) == [2])
        _ = try ticket(begin(1_000, "a", 3))
        #expect(budget.release(1, for: "b", body: body(2)) == [3])
    }

    @Test func `of bodies that wait for more, the first goes on and the others follow`() throws {
        var budget = Budget(limit: 100, waitingMax: 10, smallMax: 50)
        for number in 1...3 {
            let outcome = budget.reserve(
                25, for: "a", body: body(number), holding: 0, number)
            #expect(outcome == .granted)
        }
        func grow(_ number: Int, by bytes: Int = 25, from held: Int = 25) -> Budget.Outcome {
            budget.reserve(bytes, for: "a", body: body(number), holding: held, number)
        }
        #expect(grow(1) == .granted)
        _ = try ticket(grow(2))
        let third = try ticket(grow(3))
        // The first may even become large, and exceed the limit.
        #expect(grow(1, by: 25, from: 50) == .granted)
        #expect(budget.used == 125)
        #expect(budget.cancel(third).waiter == 3)
        #expect(budget.cancel(third).waiter == nil)
        #expect(budget.release(75, for: "a", body: body(1)) == [2])
        #expect(budget.release(50, for: "a", body: body(2)) == [])
        #expect(budget.release(25, for: "a", body: body(3)) == [])
        #expect(budget.used == 0)
    }

    @Test func `a waiter that is taken back lets those behind it pass`() throws {
        var budget = Budget(limit: 100, waitingMax: 10, smallMax: 50)
        func begin(_ bytes: Int, _ number: Int) -> Budget.Outcome {
            budget.reserve(bytes, for: "a", body: body(number), holding: 0, number)
        }
        #expect(begin(60, 1) == .granted)
        let second = try ticket(begin(90, 2))
        _ = try ticket(begin(10, 3))
        let (waiter, granted) = budget.cancel(second)
        #expect(waiter == 2 && granted == [3])
        #expect(budget.cancel(second).waiter == nil)
    }

    /// The heaviest honest use: after an epoch was voided all clients register, over slow links.
    @Test func `1,200 slow registrations get through, and a small post waits for none`() throws {
        let (phones, size) = (1_200, 55_000)
        var budget = Budget(limit: 64 << 20, waitingMax: 1_024, smallMax: 64 << 10)
        var held = [Int](repeating: 0, count: phones)
        var waits: [Int: (since: Int, total: Int)] = [:]
        var done: Set<Int> = []
        var longest = 0
        func resume(_ granted: [Int], _ second: Int) {
            for phone in granted {
                guard let wait = waits.removeValue(forKey: phone) else { continue }
                held[phone] = wait.total
                longest = max(longest, second - wait.since)
            }
        }
        for second in 1...20 {
            let arrived = size / 20 * second
            let post = budget.reserve(
                300, for: "app", body: body(phones), holding: 0, phones)
            #expect(post == .granted)
            resume(budget.release(300, for: "app", body: body(phones)), second)
            var ready = (0..<phones).filter { waits[$0] == nil && !done.contains($0) }
            while let phone = ready.popLast() {
                if held[phone] == size {
                    let granted = budget.release(size, for: "app", body: body(phone))
                    done.insert(phone)
                    resume(granted, second)
                    ready += granted
                    continue
                }
                let more = arrived - held[phone]
                guard more > 0 else { continue }
                let outcome = budget.reserve(
                    more, for: "app", body: body(phone), holding: held[phone], phone)
                if outcome == .granted {
                    held[phone] = arrived
                    if arrived == size { ready.append(phone) }
                } else {
                    _ = try ticket(outcome)
                    waits[phone] = (second, arrived)
                }
            }
        }
        #expect(done.count == phones && budget.used == 0)
        #expect((1...10).contains(longest), "\(longest) s")
    }

    /// The attack that the limit is for: bodies that take what they can, and never end.
    @Test func `bodies without end leave room for others, and one of them goes on`() {
        var budget = Budget(limit: 1_000, waitingMax: 100, smallMax: 40)
        var held = [Int](repeating: 0, count: 100)
        var ready = Array(held.indices)
        while let number = ready.popLast() {
            guard held[number] < 100 else { continue }
            let outcome = budget.reserve(
                10, for: "greedy", body: body(number), holding: held[number], number)
            guard outcome == .granted else { continue }
            held[number] += 10
            ready.insert(number, at: 0)
        }
        // 80 first pieces, and the rest of the body that leads.
        #expect(budget.used == 890)
        #expect(held.filter { $0 == 100 }.count == 1)
        let other = budget.reserve(50, for: "other", body: body(200), holding: 0, 200)
        #expect(other == .granted)
        #expect(budget.release(100, for: "greedy", body: body(99)) == [98])
    }

    /// Compares random reservations with plain bookkeeping. They keep the order of each line,
    /// exceed the limit by no more than the leading bodies, and none waits when all that can finish
    /// have ended.
    @Test(arguments: 0..<50)
    func `random work stays within the budget and never gets stuck`(seed: Int) {
        struct Work {
            let key: String
            var held = 0
            var asked = 0
            var line = ""
            var ticket: Budget.Ticket?
        }
        var random = SplitMix64(seed: UInt64(seed))
        let limit = random.pick([10, 100, 1_000])
        let keys = (0..<random.pick([1, 2, 7])).map { "app \($0)" }
        let small = limit / 5
        var budget = Budget(limit: limit, waitingMax: random.pick([0, 5, 100]), smallMax: small)
        var work: [Int: Work] = [:]
        var holding: [Int] = []
        var waiting: [Int] = []
        func granted(_ numbers: [Int]) {
            for number in numbers {
                let line = work[number]?.line
                #expect(waiting.first { work[$0]?.line == line } == number)
                waiting.removeAll { $0 == number }
                let asked = work[number]?.asked ?? 0
                work[number]?.held += asked
                holding.append(number)
            }
        }
        func reserve(_ bytes: Int, _ number: Int) {
            guard var one = work[number] else { return }
            let kind =
                one.held == 0 ? "first" : one.held + bytes <= small ? "small" : "large"
            (one.asked, one.line) = (bytes, "\(one.key) \(kind)")
            let outcome = budget.reserve(
                bytes, for: one.key, body: body(number), holding: one.held, number)
            switch outcome {
            case .granted:
                one.held += bytes
                holding.append(number)
            case .waits(let ticket):
                one.ticket = ticket
                waiting.append(number)
            case .refused: #expect(one.held == 0)
            }
            work[number] = one
        }
        func end(_ number: Int) {
            guard let one = work.removeValue(forKey: number) else { return }
            granted(budget.release(one.held, for: one.key, body: body(number)))
        }
        for number in 0..<2_000 {
            switch random.below(6) {
            case 0, 1:
                work[number] = Work(key: random.pick(keys))
                reserve(random.below(limit) + 1, number)
            case 2:
                guard !holding.isEmpty else { continue }
                let place = random.below(holding.count)
                guard let held = work[holding[place]]?.held, held < limit else { continue }
                reserve(random.below(limit - held) + 1, holding.remove(at: place))
            case 3, 4:
                guard !holding.isEmpty else { continue }
                end(holding.remove(at: random.below(holding.count)))
            default:
                guard !waiting.isEmpty else { continue }
                let other = waiting.remove(at: random.below(waiting.count))
                guard let one = work[other], let ticket = one.ticket else { continue }
                let (waiter, others) = budget.cancel(ticket)
                #expect(waiter == other)
                granted(others)
                if one.held > 0 { end(other) }
            }
            let held = holding + waiting
            #expect(budget.used == held.reduce(0) { $0 + (work[$1]?.held ?? 0) })
            #expect(budget.used <= limit * (1 + 2 * keys.count))
            #expect(budget.waitingCount == waiting.filter { work[$0]?.held == 0 }.count)
        }
        while let number = holding.popLast() { end(number) }
        #expect(waiting.isEmpty && budget.used == 0)
    }
}
