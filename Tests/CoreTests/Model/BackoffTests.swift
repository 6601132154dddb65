import Testing
import WidgetModel

@Suite struct BackoffTests {
    private func waits(_ jitter: Backoff.Jitter, random: UInt64) -> [Int64] {
        var backoff = Backoff(first: 1_000, longest: 5_000, jitter: jitter)
        return (0..<5).map { _ in backoff.failed(random: random) }
    }

    @Test func `a wait doubles up to the longest, and chance decides its part of it`() {
        #expect(waits(.full, random: 0) == [0, 0, 0, 0, 0])
        #expect(waits(.full, random: .max) == [1_000, 2_000, 4_000, 5_000, 5_000])
        #expect(waits(.half, random: 0) == [500, 1_000, 2_000, 2_500, 2_500])
        #expect(waits(.half, random: .max) == [1_000, 2_000, 4_000, 5_000, 5_000])
        #expect(waits(.quarterMore, random: 0) == [1_000, 2_000, 4_000, 5_000, 5_000])
        #expect(waits(.quarterMore, random: .max) == [1_250, 2_500, 5_000, 6_250, 6_250])
        #expect(waits(.full, random: .max / 2 + 1)[0] == 500)
    }

    @Test func `success begins anew`() {
        var backoff = Backoff(first: 1, longest: 300_000, jitter: .quarterMore)
        for _ in 0..<2_000 { _ = backoff.failed(random: 0) }
        #expect(backoff.failures == 1_000)
        #expect(backoff.failed(random: 0) == 300_000)
        backoff.succeeded()
        #expect(backoff.failures == 0)
        #expect(backoff.failed(random: 0) == 1)
    }

    @Test(arguments: [Int.min, -1, 0, 20, 21, .max])
    func `any number of failures has a wait`(failures: Int) {
        let backoff = Backoff(first: 60_000, longest: 14_400_000, jitter: .full)
        let wait = backoff.wait(failures: failures, random: .max)
        #expect(wait == (failures < 1 ? 60_000 : 14_400_000))
    }
}
