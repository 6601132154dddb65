import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCluster

/// Who leads a cluster, without a database: times are handed in.
@Suite struct LeaseTests {
    private static func view(
        _ node: String?, _ generation: Int64, left: Int64 = 6_000
    ) -> Lease.View {
        Lease.View(node: node, generation: generation, left: left)
    }

    /// Returns a node that leads since a renewal at 0.
    private func leader() -> Lease {
        var lease = Lease(node: "a")
        #expect(lease.look(Self.view(nil, 0, left: -1), isNewest: true, now: 0) == .take(from: 0))
        lease.took(1, at: 0)
        #expect(lease.look(Self.view("a", 1), isNewest: true, now: 1) == .lead(1))
        return lease
    }

    @Test func leadsOnlyAfterItHasRepeatedEverything() {
        var lease = Lease(node: "a")
        lease.took(1, at: 0)
        #expect(lease.leadsUntil == nil)
        #expect(lease.look(Self.view("a", 1), isNewest: false, now: 1) == .nothing)
        #expect(lease.leadsUntil == nil)
        #expect(lease.look(Self.view("a", 1), isNewest: true, now: 2) == .lead(1))
        #expect(lease.leadsUntil == 4_000)
    }

    @Test func stopsToWriteBeforeAnotherMayTake() {
        var lease = leader()
        lease.renewed(at: 2_000)
        #expect(lease.leadsUntil == 6_000)
        // The database holds it for 6 s from a moment after 2,000.
        #expect(lease.look(Self.view("a", 1), isNewest: true, now: 5_999) == .nothing)
        #expect(lease.look(Self.view("a", 1), isNewest: true, now: 6_000) == .follow)
        #expect(lease.leadsUntil == nil)
        #expect(lease.generation == nil)
    }

    @Test func followsOnceAnotherLeads() {
        var lease = leader()
        #expect(lease.look(Self.view("b", 2), isNewest: true, now: 100) == .follow)
        #expect(lease.look(Self.view("b", 2), isNewest: true, now: 200) == .nothing)
    }

    @Test func takesAFreeLeaseAtOnceOrLeavesItToThoseWhoLackNothing() {
        var newest = Lease(node: "b")
        var behind = Lease(node: "c")
        let free = Self.view("a", 7, left: 0)
        #expect(newest.look(free, isNewest: true, now: 10) == .take(from: 7))
        #expect(behind.look(free, isNewest: false, now: 10) == .nothing)
        #expect(behind.look(free, isNewest: false, now: 5_009) == .nothing)
        #expect(behind.look(free, isNewest: false, now: 5_010) == .take(from: 7))
        // Held in between: the time begins anew.
        #expect(behind.look(Self.view("b", 8), isNewest: false, now: 5_011) == .nothing)
        #expect(behind.look(Self.view("b", 8, left: 0), isNewest: false, now: 9_000) == .nothing)
    }

    @Test func aLeaseThatAnotherClockSetIsFree() {
        var lease = Lease(node: "b")
        #expect(lease.look(Self.view("a", 3, left: 30_000), isNewest: true, now: 0) == .nothing)
        #expect(
            lease.look(Self.view("a", 3, left: 30_001), isNewest: true, now: 1) == .take(from: 3))
    }

    @Test func takesOverFromItselfAfterAnUnknownOutcome() {
        var lease = leader()
        lease.abandon()
        #expect(lease.leadsUntil == nil)
        #expect(lease.look(Self.view("a", 1), isNewest: true, now: 50) == .take(from: 1))
        lease.took(2, at: 50)
        // A look from before.
        #expect(lease.look(Self.view("a", 1), isNewest: true, now: 51) != .lead(1))
    }

    @Test func `leaves the lease to others for a time`() {
        var lease = leader()
        lease.leave(until: 900)
        #expect(lease.generation == nil)
        let free = Self.view("a", 1, left: 0)
        #expect(lease.look(free, isNewest: true, now: 899) == .nothing)
        #expect(lease.look(free, isNewest: true, now: 900) == .take(from: 1))
    }

    @Test func `a fail-over of the database is no objection, and one that does not end is`() {
        var outage = Outage()
        #expect(outage.objection(at: 0) == nil)
        outage.failed("no server", at: 1_000)
        outage.failed("still none", at: 6_000)
        #expect(outage.objection(at: 10_999) == nil)
        #expect(outage.objection(at: 11_000) == "still none")
        outage.ended()
        #expect(outage.objection(at: 60_000) == nil)
        // The next one has its own time.
        outage.failed("no server", at: 70_000)
        #expect(outage.objection(at: 79_999) == nil)
        #expect(outage.objection(at: 80_000) == "no server")
    }

    // MARK: Histories

    /// A database and nodes whose calls are late, lost, or answered after the node has slept.
    private struct World {
        struct Node {
            var lease: Lease
            /// The call on its way: what it does, when it began, and whether its answer comes.
            var call: (action: Call, began: Int64, answers: Bool)?
            /// The time until which the node does nothing.
            var sleepsUntil: Int64 = 0
        }

        enum Call {
            /// What it saw, if the answer is on its way already.
            case look(Lease.View?)
            case take(from: Int64)
            case renew(Int64)
        }

        var random: SplitMix64
        var now: Int64 = 0
        /// The lease in the database, and when it runs out.
        var held = (node: String?.none, generation: Int64(0), until: Int64(0))
        var nodes: [Node]
        /// The highest generation under which anybody could write.
        var written: Int64 = 0
        var leaders = 0

        init(seed: UInt64) {
            random = SplitMix64(seed: seed)
            nodes = ["a", "b", "c"].map { Node(lease: Lease(node: $0)) }
        }

        mutating func step() throws {
            now += Int64.random(in: 0...900, using: &random)
            let index = Int.random(in: nodes.indices, using: &random)
            guard nodes[index].sleepsUntil <= now else { return }
            if Int.random(in: 0..<40, using: &random) == 0 {
                // Paused, in a call or not; its process goes on where it was.
                nodes[index].sleepsUntil = now + Int64.random(in: 0...20_000, using: &random)
                return
            }
            if let call = nodes[index].call {
                nodes[index].call = nil
                try finish(call, of: index)
            } else {
                begin(index)
            }
            // Who may write now, by its own reckoning.
            let writers = nodes.filter { ($0.lease.leadsUntil ?? .min) > now }
            guard writers.count <= 1 else { throw TestFailure("two nodes write at \(now)") }
            for writer in writers {
                let generation = try #require(writer.lease.generation)
                guard generation >= written else {
                    throw TestFailure("generation \(generation) writes after \(written)")
                }
                if generation > written { leaders += 1 }
                written = generation
            }
        }

        private var view: Lease.View {
            Lease.View(node: held.node, generation: held.generation, left: held.until - now)
        }

        private mutating func begin(_ index: Int) {
            let lost = Int.random(in: 0..<10, using: &random) == 0
            let action: Call =
                if let generation = nodes[index].lease.generation, Bool.random(using: &random) {
                    .renew(generation)
                } else {
                    .look(Bool.random(using: &random) ? view : nil)
                }
            nodes[index].call = (action, now, !lost)
        }

        /// The database does what was asked, and the node learns of it, or not.
        private mutating func finish(
            _ call: (action: Call, began: Int64, answers: Bool), of index: Int
        ) throws {
            let name = ["a", "b", "c"][index]
            switch call.action {
            case .look(let seen):
                guard call.answers else { return }
                let action = nodes[index].lease.look(
                    seen ?? view, isNewest: Int.random(in: 0..<4, using: &random) > 0,
                    now: call.began)
                if case .take(let generation) = action {
                    let lost = Int.random(in: 0..<10, using: &random) == 0
                    nodes[index].call = (.take(from: generation), now, !lost)
                }
            case .take(let generation):
                guard held.generation == generation, held.node == name || held.until < now
                else { return }
                held = (name, generation + 1, now + 6_000)
                // Taken, and perhaps nobody knows: it is looked at again.
                if call.answers { nodes[index].lease.took(generation + 1, at: call.began) }
            case .renew(let generation):
                guard held.node == name, held.generation == generation else { return }
                held.until = now + 6_000
                if call.answers {
                    nodes[index].lease.renewed(at: call.began)
                } else {
                    nodes[index].lease.abandon()
                }
            }
        }
    }

    @Test func inNoHistoryDoTwoNodesWriteAtOnceOrAnOlderGenerationAfterANewer() throws {
        var leaders = 0
        for seed in 0..<300 {
            var world = World(seed: UInt64(seed))
            for _ in 0..<2_000 { try world.step() }
            leaders += world.leaders
        }
        // It did happen that others led.
        #expect(leaders > 3_000)
    }
}
