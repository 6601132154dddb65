import GatewayCluster
import Testing

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
}
