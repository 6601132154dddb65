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

    /// The verdict on a look that stays the same for so many milliseconds.
    @Test func `each part fails by its own name, and kills slowly if a restart helps`() {
        let rows: [((inout Health.Snapshot) -> Void, Int64, Health.Verdict)] = [
            ({ _ in }, 100_000, .init()),
            ({ $0.isServing = false }, 0, .init(notReady: [.listener])),
            ({ $0.loops = 9 }, 4_999, .init()),
            ({ $0.loops = 9 }, 5_000, .init(notReady: [.eventLoops])),
            ({ $0.loops = 9 }, 59_999, .init(notReady: [.eventLoops])),
            ({ $0.loops = 9 }, 60_000, .init(notReady: [.eventLoops], stuck: [.eventLoops])),
            ({ $0.pushes = 3 }, 5_000, .init(notReady: [.pushes])),
            ({ $0.pushes = nil }, 5_000, .init()),
            // A writer that ends no transaction while writes wait.
            ({ $0.waitingWrites = 1 }, 60_000, .init(notReady: [.log], stuck: [.log])),
            ({ $0.certificateEnds = 1_000 }, 0, .init(notReady: [.certificate])),
            ({ $0.certificateEnds = 1_001 }, 0, .init()),
        ]
        for (place, (change, milliseconds, verdict)) in rows.enumerated() {
            var look = well
            change(&look)
            #expect(judge([(7, look), (7 + milliseconds, look)]) == verdict, "row \(place)")
        }
    }

    @Test func `whoever moves between two looks is not stuck, however far behind`() {
        var (first, second) = (well, well)
        (first.loops, first.pushes, first.head) = (1, 3, 1_000_000)
        (second.loops, second.pushes, second.head) = (2, 4, 2_000_000)
        #expect(judge([(0, first), (100_000, second)]) == Health.Verdict())
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
}
