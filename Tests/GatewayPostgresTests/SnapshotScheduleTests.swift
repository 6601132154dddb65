import Testing

@testable import GatewayPostgres

/// When a node writes a snapshot.
@Suite struct SnapshotScheduleTests {
    private let schedule = SnapshotSchedule()

    private func head(
        _ position: Int64, age: Int64, floor: Int64 = 0, format: Int64 = NodeSnapshot.format,
        isOfLog: Bool = true
    ) -> SnapshotHead {
        SnapshotHead(
            position: LogPosition(last: position, chain: 7), node: 1, parts: 1, format: format,
            checksum: [], floor: floor, logChain: isOfLog ? 7 : 8, age: age)
    }

    private func decision(
        at position: Int64, floor: Int64 = 0, _ heads: SnapshotHead...
    ) -> SnapshotSchedule.Decision {
        schedule.decision(at: position, floor: floor, heads: heads)
    }

    @Test func `the first one is written once there is anything to write`() {
        #expect(decision(at: 0) == .notDue)
        #expect(decision(at: 1) == .write)
        #expect(decision(at: 9, floor: 8) == .write)
    }

    @Test func `another one follows after ten minutes or a million changes`() {
        #expect(decision(at: 200, head(100, age: 599_999)) == .notDue)
        #expect(decision(at: 200, head(100, age: 600_000)) == .write)
        #expect(decision(at: 1_000_099, head(100, age: 0)) == .notDue)
        #expect(decision(at: 1_000_100, head(100, age: 0)) == .write)
        // Nothing has changed, or the node is behind another one.
        #expect(decision(at: 100, head(100, age: 9_000_000)) == .notDue)
        #expect(decision(at: 99, head(100, age: 9_000_000)) == .notDue)
        // The newest one counts.
        #expect(decision(at: 300, head(200, age: 5), head(100, age: 700_000)) == .notDue)
    }

    @Test func `one that no node can read counts for nothing`() {
        #expect(decision(at: 200, head(100, age: 5, format: 9)) == .write)
        #expect(decision(at: 200, head(100, age: 5, isOfLog: false)) == .write)
        #expect(
            decision(at: 200, head(150, age: 5, isOfLog: false), head(100, age: 5)) == .notDue)
    }

    @Test func `a node that knows less leaves it to others for an hour`() {
        let floor: Int64 = 50
        func decide(age: Int64) -> SnapshotSchedule.Decision {
            decision(at: 200, floor: floor, head(100, age: age, floor: 40))
        }
        #expect(decide(age: 599_999) == .notDue)
        #expect(decide(age: 600_000) == .knowsLess)
        #expect(decide(age: 3_599_999) == .knowsLess)
        #expect(decide(age: 3_600_000) == .write)
        #expect(decision(at: 200, floor: 40, head(100, age: 600_000, floor: 40)) == .write)
        #expect(decision(at: 2_000_000, floor: 50, head(100, age: 0, floor: 40)) == .knowsLess)
    }
}
