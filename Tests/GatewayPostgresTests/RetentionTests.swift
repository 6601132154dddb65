import ClusterTestSupport
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayPostgres

@Suite struct RetentionPlanTests {
    @Test func theNewestSlicesStayAndNothingPassesAHold() {
        func first(head: Int64, floor: Int64 = 0, hold: Int64? = nil) -> Int64? {
            RetentionPlan(
                .init(head: head, floor: floor, slice: 10, oldestHold: hold), slicesKept: 3
            ).firstKept
        }
        #expect(first(head: 0) == nil)
        #expect(first(head: 29) == nil)
        #expect(first(head: 30) == 1)
        #expect(first(head: 55) == 3)
        #expect(first(head: 55, floor: 30) == nil)
        #expect(first(head: 55, hold: 19) == 1)
        #expect(first(head: 55, hold: 20) == 2)
        #expect(first(head: 55, floor: 12, hold: 19) == nil)
    }

    @Test func aPlanNeverGoesBackAndKeepsWhatIsHeld() {
        var random = SplitMix64(seed: 1)
        for _ in 0..<2_000 {
            let slice = Int64(1 + random.below(20))
            let head = Int64(random.below(500))
            let floor = Int64(random.below(Int(head) + 1))
            let hold = random.happens(50) ? floor + Int64(random.below(Int(head - floor) + 1)) : nil
            let kept = Int64(1 + random.below(5))
            let log = RetentionPlan.Log(head: head, floor: floor, slice: slice, oldestHold: hold)
            guard let first = RetentionPlan(log, slicesKept: kept).firstKept else { continue }
            #expect(first * slice <= hold ?? head)
            #expect(first * slice > floor)
            #expect(head / slice - first + 1 >= kept)
        }
    }
}

@Suite(.enabled(if: PostgresServer.isInstalled)) struct RetentionTests {
    /// A log of slices of 10, whose second batch crosses a border.
    private let cluster: ClusterFixture
    private let writer: HandWriter
    private let rounds: RoundFixture<RetentionRound>
    private let positions: [LogPosition]

    init() throws {
        cluster = try ClusterFixture(slice: 10)
        writer = try HandWriter(cluster)
        rounds = try RoundFixture(try cluster.address(user: "node1"))
        var positions: [LogPosition] = []
        for count in [8, 5, 7, 9, 4, 7, 5] { positions.append(try writer.append(count)) }
        self.positions = positions
        #expect(positions.map(\.last) == [8, 13, 20, 29, 33, 40, 45])
    }

    private func integers(_ sql: String) throws -> [Int64] {
        try cluster.administration().rows(sql).map { try $0.integer(0) }
    }

    private var lasts: [Int64] {
        get throws { try integers("SELECT last FROM tg.log ORDER BY last") }
    }

    /// Returns what a log may never show: an event without its batch's events, a hole, no batch at
    /// the floor.
    private func check(through head: Int64 = 45) throws {
        let floor = try #require(try integers("SELECT floor FROM tg.log_floor").first)
        let events = try integers(
            "SELECT seq FROM tg.event WHERE seq > \(floor) ORDER BY seq")
        #expect(events == (floor < head ? Array(floor + 1...head) : []))
        #expect(try integers("SELECT last FROM tg.log WHERE last = \(floor)") == [floor])
        #expect(try lasts.last == head)
    }

    @Test func slicesBelowTheFloorGoAndABatchOverABorderStays() throws {
        let outcome = try rounds.run(RetentionRound(slicesKept: 4))
        #expect(outcome.floor == 13)
        #expect(outcome.removals == ["event_0", "event_0", "log_0", "log_0"])
        #expect(!outcome.isBlocked)
        #expect(try lasts == [13, 20, 29, 33, 40, 45])
        try check()
        // All but the newest slice: its first batch ends at the border.
        #expect(try rounds.run(RetentionRound(slicesKept: 1)).floor == 40)
        #expect(try lasts == [40, 45])
        try check()
        #expect(try rounds.run(RetentionRound(slicesKept: 1)).removals == [])
        try writer.append(3)
        try check(through: 48)
    }

    @Test func nothingPassesAReservationAKeptSnapshotOrTheNewestBatch() throws {
        let other = try HandWriter(cluster, login: "node2")
        #expect(try other.reserve(positions[1]))
        try cluster.execute(
            """
            INSERT INTO tg.snapshot_head VALUES (29, 1, 0, '', 0, 1, '', clock_timestamp());
            INSERT INTO tg.snapshot_head VALUES (40, 1, 0, '', 0, 1, '', clock_timestamp());
            """)
        let floors = try (0...9).map { slice in
            try writer.connection.rows("SELECT tg.retain(\(slice))").first?.integer(0)
        }
        #expect(floors == [0] + (1...9).map { _ in 13 })
        #expect(try rounds.run(RetentionRound(slicesKept: 1)).floor == 13)
        #expect(try lasts.first == 13)
        try check()
        // A reservation ends by itself.
        try cluster.execute("UPDATE tg.reservation SET until = clock_timestamp()")
        // The first batch of slice 3 lies behind the snapshot.
        #expect(try writer.connection.rows("SELECT tg.retain(3)").first?.integer(0) == 13)
        #expect(try rounds.run(RetentionRound(slicesKept: 1)).floor == 20)
        #expect(try lasts.first == 20)
        try check()
        try cluster.execute("DELETE FROM tg.snapshot_head WHERE position = 29")
        #expect(try rounds.run(RetentionRound(slicesKept: 1)).floor == 40)
        #expect(try lasts.first == 40)
        try check()
        #expect(try writer.connection.rows("SELECT tg.retain(100)").first?.integer(0) == 40)
    }

    @Test func aPositionIsReservedOnlyWhileTheLogHasItWithItsChain() throws {
        #expect(try writer.reserve(positions[0]))
        try writer.connection.execute("SELECT tg.end_reservation()")
        let other = LogPosition(last: positions[3].last, chain: positions[3].chain ^ 1)
        #expect(try !writer.reserve(other))
        #expect(try !writer.reserve(LogPosition(last: 14, chain: positions[3].chain)))
        #expect(try rounds.run(RetentionRound(slicesKept: 3)).floor == 20)
        #expect(try !writer.reserve(positions[1]))
        #expect(try writer.reserve(positions[2]))
        let left = try integers(
            """
            SELECT extract(epoch FROM until - clock_timestamp())::bigint FROM tg.reservation
            """)
        #expect(left.allSatisfy { (600...900).contains($0) })
    }

    /// A reservation and a move of the floor at the same time: one of the two waits and then sees
    /// the other.
    @Test func aReservationAndTheFloorDoNotMissEachOther() throws {
        let other = try HandWriter(cluster, login: "node2")
        try other.connection.execute("BEGIN")
        #expect(try other.reserve(positions[0]))
        let mover = try PostgresAdministration(try cluster.address(user: "node1"))
        try mover.execute("SET lock_timeout = '100ms'")
        #expect(throws: PostgresError.lockTimeout) { try mover.execute("SELECT tg.retain(3)") }
        try other.connection.execute("COMMIT")
        #expect(try mover.rows("SELECT tg.retain(3)").first?.integer(0) == 0)
    }

    @Test func aDumpHoldsUpNoAppendAndItsSlicesGoLater() throws {
        let dump = try cluster.administration()
        try dump.execute(
            """
            BEGIN ISOLATION LEVEL REPEATABLE READ;
            LOCK TABLE tg.log, tg.event, tg.log_0, tg.event_0 IN ACCESS SHARE MODE
            """)
        for _ in 0..<3 {
            let outcome = try rounds.run(RetentionRound(slicesKept: 3))
            #expect(outcome.isBlocked)
            #expect(outcome.floor == 20)
            #expect(outcome.removals == [])
        }
        // New slices are made all the same.
        try writer.append(9)
        #expect(try rounds.run(RetentionRound(slicesKept: 3)).missingSlices == 0)
        #expect(try writer.connection.rows("SELECT tg.missing_slices()").first?.integer(0) == 0)
        try check(through: 54)
        try dump.execute("COMMIT")
        let outcome = try rounds.run(RetentionRound(slicesKept: 3))
        #expect(!outcome.isBlocked)
        #expect(
            Set(outcome.removals) == ["log_0", "event_0", "log_1", "event_1", "log_2", "event_2"])
        try check(through: 54)
    }

    @Test func aMissingSliceIsCountedUntilItIsMade() throws {
        func missing() throws -> Int64? {
            try writer.connection.rows("SELECT tg.missing_slices()").first?.integer(0)
        }
        // A batch of the last append began a slice.
        #expect(try missing() == 0)
        try cluster.execute("ALTER TABLE tg.event DETACH PARTITION tg.event_6")
        #expect(try missing() == 1)
        try cluster.execute("DROP TABLE tg.event_6; DROP TABLE tg.log_6")
        #expect(try missing() == 2)
        let outcome = try rounds.run(RetentionRound())
        #expect(outcome.missingSlices == 0)
        #expect(try missing() == 0)
    }
}
