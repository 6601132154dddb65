import GatewayTestSupport
import Testing

@testable import gateway_faults

/// `kill -9` at any moment loses nothing that was answered (invariant 1).
@Suite(.serialized) struct KillTests {
    @Test(arguments: [UInt64(11), 22, 33, 44, 55])
    func aKilledGatewayKeepsEveryAnswerItGave(seed: UInt64) throws {
        // A run in which little happens would prove little.
        let context = RowContext(seed: seed, seconds: 12) { kills, verdict in
            kills > 5 && verdict.changes > 100 && verdict.notifications > 100
                && verdict.unansweredPosts > 0 && verdict.registrations > 25
        }
        defer { context.campaign?.stop() }
        // Each kill comes after a few requests, so it often hits the processing of one.
        try context.kill(pauses: 0.02...0.5)
        let campaign = try #require(context.campaign)
        let verdict = Judge.judge(campaign.recorder.record)
        #expect(
            verdict.violations == [],
            "seed \(seed), \(context.figures)\n\(campaign.gateway.standardErrorTail)")
        let kills = try #require(context.figures.first { $0.name == "kills" })
        #expect(Int(kills.value) ?? 0 > 5)
        #expect(verdict.changes > 100 && verdict.notifications > 100)
        #expect(verdict.unansweredPosts > 0 && verdict.registrations > 25)
    }
}
