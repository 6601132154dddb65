import Foundation
import Synchronization
import Testing

/// Repeats a test that failed while the machine stood still for longer than a lease allows: what it
/// saw then may be another leader's work, and shows nothing. A fault fails it without a stall, too.
struct RepeatedAfterStalls: TestTrait, SuiteTrait, TestScoping {
    private static let repetitionsMax = 5

    var isRecursive: Bool { true }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        for repetition in 1...Self.repetitionsMax {
            let before = StallWatch.shared.stalls
            let wasStalled = SharedMutex(false)
            try await withKnownIssue("the machine stood still", isIntermittent: true) {
                try await function()
            } matching: { _ in
                guard repetition < Self.repetitionsMax, StallWatch.shared.looked() > before else {
                    return false
                }
                wasStalled.value.withLock { $0 = true }
                return true
            }
            if !wasStalled.value.withLock(\.self) { return }
        }
    }
}

extension Trait where Self == RepeatedAfterStalls {
    static var repeatedAfterStalls: Self { Self() }
}

/// Counts the times at which the threads of this process got no turn for a second.
private final class StallWatch: Sendable {
    static let shared = StallWatch()

    private let state = Mutex((looks: 0, stalls: 0))

    private init() {
        Thread.detachNewThread {
            var last = ContinuousClock.now
            while true {
                usleep(50_000)
                let now = ContinuousClock.now
                self.state.withLock {
                    $0.looks += 1
                    if now - last > .seconds(1) { $0.stalls += 1 }
                }
                last = now
            }
        }
    }

    var stalls: Int { state.withLock { $0.stalls } }

    /// The number, with a stall that ends at this moment.
    func looked() -> Int {
        let looks = state.withLock { $0.looks }
        while state.withLock({ $0.looks }) < looks + 2 { usleep(10_000) }
        return stalls
    }
}
