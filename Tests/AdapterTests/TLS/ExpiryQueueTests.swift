import NIOCore
import Testing
import WidgetModel

@testable import GatewayTLS

@Suite struct ExpiryQueueTests {
    private static let start = NIODeadline.uptimeNanoseconds(1_000)

    @Test func whatIsSetPassesInOrderAndAtItsTime() {
        var queue = ExpiryQueue<Int>(ahead: .nanoseconds(10))
        for owner in 0..<5 {
            let due = queue.set(owner, now: Self.start + .nanoseconds(Int64(owner)))
            #expect(due == Self.start + .nanoseconds(Int64(owner) + 10))
        }
        #expect(queue.next { _, _ in true } == Self.start + .nanoseconds(10))
        #expect(queue.takePassed(now: Self.start + .nanoseconds(9)) { _, _ in true } == nil)
        var passed: [Int] = []
        while let owner = queue.takePassed(now: Self.start + .nanoseconds(12), { _, _ in true }) {
            passed.append(owner)
        }
        #expect(passed == [0, 1, 2])
        #expect(queue.count == 2)
    }

    @Test func whatIsOverNeitherPassesNorIsWaitedFor() {
        var queue = ExpiryQueue<Int>(ahead: .nanoseconds(10))
        for owner in 0..<100 { _ = queue.set(owner, now: Self.start) }
        let isSet = { (owner: Int, _: NIODeadline) in owner == 70 || owner == 80 }
        #expect(queue.next(isSet) == Self.start + .nanoseconds(10))
        #expect(queue.count == 30, "what is over before the next one is not kept")
        #expect(queue.takePassed(now: .distantFuture, isSet) == 70)
        #expect(queue.takePassed(now: .distantFuture, isSet) == 80)
        #expect(queue.takePassed(now: .distantFuture, isSet) == nil)
        #expect(queue.next(isSet) == nil && queue.count == 0)
    }

    /// Compares with a model that searches all deadlines, for histories of setting, ending and
    /// passing.
    @Test(arguments: 0..<50) func anyHistoryAgreesWithTheModel(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var queue = ExpiryQueue<Int>(ahead: .nanoseconds(20))
        var model: [Int: NIODeadline] = [:]
        var now = Self.start
        for owner in 0..<400 {
            now = now + .nanoseconds(Int64.random(in: 0...3, using: &generator))
            model[owner] = queue.set(owner, now: now)
            if Bool.random(using: &generator),
                let over = model.keys.randomElement(using: &generator)
            {
                model[over] = nil
            }
            let isSet = { (owner: Int, due: NIODeadline) in model[owner] == due }
            #expect(queue.next(isSet) == model.values.min())
            guard Int.random(in: 0..<4, using: &generator) == 0 else { continue }
            while let passed = queue.takePassed(now: now, isSet) {
                let due = model.removeValue(forKey: passed)
                #expect(due.map { $0 <= now } == true)
            }
            #expect(model.values.allSatisfy { $0 > now })
        }
    }
}
