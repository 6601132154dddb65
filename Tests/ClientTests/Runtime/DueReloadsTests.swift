import GatewayTelemetry
import Testing

@testable import timelinectl

@Suite struct DueReloadsTests {
    private let start = ContinuousClock.now

    private func at(_ seconds: Int) -> ContinuousClock.Instant { start + .seconds(seconds) }

    @Test func aRebuildCountsFromTheLatestChangeItCovers() {
        var due = DueReloads(patience: .seconds(10))
        let one = due.post([7, 8], at: at(0))
        let two = due.post([7], at: at(2))
        #expect(due.accepted(one, at: 11) == .init())
        #expect(due.accepted(two, at: 12) == .init())
        #expect(due.due == 3)
        #expect(due.rebuilt(7, upTo: 12, at: at(5)) == .init(took: [(7, .seconds(3))]))
        #expect(due.due == 1)
        #expect(due.rebuilt(8, upTo: 11, at: at(5)) == .init(took: [(8, .seconds(5))]))
        #expect(due.due == 0)
    }

    @Test func aRebuildThatDoesNotCoverTheChangeLeavesItDue() {
        var due = DueReloads(patience: .seconds(10))
        _ = due.accepted(due.post([7], at: at(0)), at: 11)
        #expect(due.rebuilt(7, upTo: 10, at: at(1)) == .init(strays: 1))
        #expect(due.due == 1)
        #expect(due.giveUp(now: at(9)) == 0)
        #expect(due.giveUp(now: at(10)) == 1)
        #expect(due.due == 0)
        #expect(due.giveUp(now: at(20)) == 0)
    }

    @Test func aRebuildWithoutAReasonIsAStrayOnceThatIsKnown() {
        var due = DueReloads(patience: .seconds(10))
        let change = due.post([7], at: at(0))
        #expect(due.rebuilt(7, upTo: 11, at: at(1)) == .init())
        #expect(due.accepted(change, at: 12) == .init(strays: 1))
        #expect(due.rebuilt(7, upTo: 12, at: at(2)) == .init(took: [(7, .seconds(2))]))
    }

    /// Several posts are answered in any order, some of them after the rebuild that covers all.
    @Test(arguments: [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
    func `a rebuild counts once, however late the posts are answered`(order: [Int]) {
        var due = DueReloads(patience: .seconds(10))
        let changes = (0..<3).map { due.post([7], at: at($0)) }
        #expect(due.rebuilt(7, upTo: 13, at: at(4)) == .init())
        let later = due.post([7], at: at(5))
        let outcomes = order.map { due.accepted(changes[$0], at: UInt64($0) + 11) }
        #expect(outcomes == [.init(), .init(), .init(took: [(7, .seconds(2))])])
        #expect(due.due == 1)
        #expect(due.accepted(later, at: 14) == .init())
        #expect(due.rebuilt(7, upTo: 14, at: at(6)) == .init(took: [(7, .seconds(1))]))
    }

    /// When the window of one rule ends, the latest change is notified. A change of another rule is
    /// notified later, although the rebuild has covered it.
    @Test func changesOfSeveralRulesCostOneRebuild() {
        var due = DueReloads(patience: .seconds(10))
        for sequence in UInt64(58)...61 {
            _ = due.accepted(due.post([7], at: at(0)), at: sequence)
        }
        #expect(due.rebuilt(7, upTo: 60, at: at(1)) == .init(took: [(7, .seconds(1))]))
        #expect(due.rebuilt(7, upTo: 60, at: at(2)) == .init(strays: 1), "for 59 once more")
        #expect(due.due == 1)
        #expect(due.rebuilt(7, upTo: 61, at: at(4)) == .init(took: [(7, .seconds(4))]))
        #expect(due.rebuilt(7, upTo: 61, at: at(5)) == .init(strays: 1))
    }

    @Test func whatTheGatewayRefusedIsNotDue() {
        var due = DueReloads(patience: .seconds(10))
        let change = due.post([7, 8], at: at(0))
        #expect(due.refused(change) == .init())
        #expect(due.due == 0)
        #expect(due.rebuilt(7, upTo: 11, at: at(1)) == .init(strays: 1))
    }

    @Test func bucketsSayWhatTheyHoldSinceAnEarlierReading() {
        let before = HistogramCounts(cumulative: [0.1: 5, 0.5: 9, 1: 9, .infinity: 9])
        let after = HistogramCounts(cumulative: [0.1: 5, 0.5: 19, 1: 108, .infinity: 109])
        let window = after.since(before)
        #expect(window.total == 100)
        #expect(window.bucket(ofQuantile: 0.1)?.upTo == 0.5)
        #expect(window.bucket(ofQuantile: 0.5)?.above == 0.5)
        #expect(window.bucket(ofQuantile: 1)?.upTo == .infinity)
        #expect(
            [0.05, 0.3, 0.7].map { window.agrees($0, onQuantile: 0.5) } == [false, true, true])
        #expect(after.since(after).bucket(ofQuantile: 0.5) == nil)
    }
}
