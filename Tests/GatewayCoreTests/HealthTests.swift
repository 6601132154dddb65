import Testing

@testable import GatewayCore

@Suite struct HealthTests {
    /// The state of a gateway without problems.
    private let well = Health.Snapshot(
        isServing: true, head: 10, loops: 10, pushes: 10, commits: 5, failedCommits: 0,
        isDiskRefusing: false, waitingWrites: 0, certificateEnds: 2_000)

    private func judge(_ looks: [(at: Int64, look: Health.Snapshot)]) -> Health.Verdict {
        var health = Health()
        var verdict = Health.Verdict()
        for (at, look) in looks { verdict = health.judge(look, now: at, wallSeconds: 1_000) }
        return verdict
    }

    @Test func `nothing fails where everything moves`() {
        #expect(judge([(0, well), (100_000, well)]) == Health.Verdict())
    }

    @Test func `a listener that does not accept is not ready, and no restart helps`() {
        var look = well
        look.isServing = false
        #expect(judge([(0, look)]) == .init(notReady: [.listener]))
    }

    @Test(arguments: [(4_999, 0, 0), (5_000, 1, 0), (59_999, 1, 0), (60_000, 1, 1)])
    func `event loops that apply nothing fail fast and kill slowly`(
        milliseconds: Int64, notReady: Int, stuck: Int
    ) {
        var look = well
        look.loops = 9
        let verdict = judge([(7, look), (7 + milliseconds, look)])
        #expect(verdict.notReady == Array(repeating: .eventLoops, count: notReady))
        #expect(verdict.stuck == Array(repeating: .eventLoops, count: stuck))
    }

    @Test func `whoever moves between two looks is not stuck, however far behind`() {
        var (first, second) = (well, well)
        (first.loops, first.pushes, first.head) = (1, 3, 1_000_000)
        (second.loops, second.pushes, second.head) = (2, 4, 2_000_000)
        #expect(judge([(0, first), (100_000, second)]) == Health.Verdict())
    }

    @Test func `pushes that are not decided fail by their own name`() {
        var look = well
        look.pushes = 3
        #expect(judge([(0, look), (5_000, look)]).notReady == [.pushes])
        look.pushes = nil
        #expect(judge([(0, look), (5_000, look)]) == Health.Verdict())
    }

    @Test func `a writer that ends no transaction while writes wait is stuck`() {
        var look = well
        look.waitingWrites = 1
        #expect(judge([(0, look), (60_000, look)]) == .init(notReady: [.log], stuck: [.log]))
    }

    @Test func `a disk that refuses is not ready at once, and as long as it refuses`() {
        var refusing = well
        (refusing.failedCommits, refusing.isDiskRefusing) = (1, true)
        #expect(judge([(0, well), (1, refusing)]).notReady == [.log])
        #expect(judge([(0, well), (1, refusing), (90_000, refusing)]) == .init(notReady: [.log]))
        // Transactions that succeeded because they changed nothing do not count.
        var repeated = refusing
        repeated.commits = 6
        #expect(judge([(0, well), (1, refusing), (2, repeated)]).notReady == [.log])
        repeated.isDiskRefusing = false
        #expect(judge([(0, well), (1, refusing), (2, repeated)]) == Health.Verdict())
    }

    @Test func `a certificate that ended is not ready`() {
        var look = well
        look.certificateEnds = 1_000
        #expect(judge([(0, look)]).notReady == [.certificate])
        look.certificateEnds = 1_001
        #expect(judge([(0, look)]) == Health.Verdict())
    }
}
