import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct WriteHealthTests {
    private let quiet = WriteHealth.quietMilliseconds

    @Test func `the largest refusal decides, up to a limit`() {
        var health = WriteHealth()
        health.recordRefusal(bytes: 20_000, at: 0)
        health.recordRefusal(bytes: 10, at: 1)
        #expect(health.missingProofBytes == 20_000)
        health.recordRefusal(bytes: .max, at: 2)
        #expect(health.missingProofBytes == WriteHealth.proofBytesMax)
        // A new doubt demands no more proof than its own refusals.
        health.recordWrite(bytes: WriteHealth.proofBytesMax)
        #expect(health.missingProofBytes == nil)
        health.recordRefusal(bytes: 0, at: 2 + quiet)
        #expect(health.missingProofBytes == 1)
    }

    /// Compares it with a model that keeps every event: the disk counts as refusing until a proof
    /// was written after the last refusal and the quiet time is over. Events before the last change
    /// to "well" do not count.
    @Test(arguments: 0..<20) func `it agrees with a model that forgets nothing`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var health = WriteHealth()
        var now: Int64 = 0
        var events: [(refusedAt: Int64?, bytes: Int)] = []
        for _ in 0..<2_000 {
            now += Int64.random(in: 0...900, using: &random)
            func isRefusing() -> Bool {
                guard let last = events.lastIndex(where: { $0.refusedAt != nil }),
                    let refusedAt = events[last].refusedAt
                else { return false }
                let demanded =
                    events.filter { $0.refusedAt != nil }
                    .map { min(max($0.bytes, 1), WriteHealth.proofBytesMax) }.max() ?? 0
                let isProven = events[last...].dropFirst().contains {
                    $0.refusedAt == nil && $0.bytes >= demanded
                }
                return !isProven || now - refusedAt < WriteHealth.quietMilliseconds
            }
            if !isRefusing() { events = [] }
            #expect(health.isRefusing(at: now) == isRefusing())
            let bytes = [0, 100, 5_000, 70_000, 1 << 20].randomElement(using: &random) ?? 0
            if Int.random(in: 0..<4, using: &random) == 0 {
                health.recordRefusal(bytes: bytes, at: now)
                events.append((now, bytes))
            } else {
                health.recordWrite(bytes: bytes)
                events.append((nil, bytes))
            }
            #expect(health.isRefusing(at: now) == isRefusing())
        }
    }
}
