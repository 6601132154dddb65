import ClusterTestSupport
import GatewayTestSupport
import Testing

@testable import GatewayPostgres

@Suite(.enabled(if: PostgresServer.isInstalled)) struct PartitionSchemaTests {
    private func parts(_ rows: [PostgresRow]) throws -> [Int64] {
        try rows.map { try $0.integer(0) }
    }

    private static func flush(
        _ told: Int, generation: Int = 1, owed: Bool = false, clear: Int = 0
    ) -> String {
        """
        SELECT * FROM tg.flush('{1}', '{\(generation)}', '{\(clear)}', '{1}', '{app}',
          '{client}', '{\(told)}', '{\(owed)}', array['\\x01'::bytea])
        """
    }

    private static let state =
        "SELECT s.told, o.clear, s.owed FROM tg.push_state s JOIN tg.owner o USING (part)"

    /// Two nodes with their connections; the first one has parts 1, 2 and 4098.
    private func nodes() throws -> (ClusterFixture, PostgresAdministration, PostgresAdministration)
    {
        let fixture = try ClusterFixture()
        let first = try fixture.connection(as: "node1")
        let second = try fixture.connection(as: "node2")
        for (number, node) in [first, second].enumerated() {
            try node.execute(
                """
                SELECT tg.attach(\(number + 1), true);
                SELECT tg.renew(true, '{}'); SELECT tg.renew(true, NULL)
                """)
        }
        #expect(
            try parts(first.rows("SELECT * FROM tg.take('{1,2,4098}', '{}', '{}')"))
                == [1, 2, 4098])
        return (fixture, first, second)
    }

    @Test func partitionsAreTakenOnlyFromADeadOwner() throws {
        let (fixture, first, second) = try nodes()
        let take = "SELECT * FROM tg.take('{1,2}', '{1}', '{2}')"
        #expect(try second.rows(take).isEmpty)
        let answer = try #require(try first.rows("SELECT * FROM tg.renew(true, '{}')").first)
        #expect(try answer.integer(0) == 1)
        #expect(try answer.integers(1) == [1, 2, 4098])
        #expect(try answer.integers(2) == [1, 1, 1])
        #expect(try answer.integers(3).sorted() == [1, 2])
        #expect(try answer.integers(4).sorted() == [2, 3])
        #expect(try answer.integers(5).sorted() == [1, 2])
        func expire(_ lease: String) throws {
            try fixture.execute(
                "UPDATE tg.node_seen SET until = clock_timestamp() \(lease) WHERE node = 1")
        }
        try expire("- interval '1 s'")
        // It has renewed since: by the server's clock it is dead, by its renewals it is not.
        #expect(try second.rows(take).isEmpty)
        try expire("+ interval '9 s'")
        #expect(try second.rows("SELECT * FROM tg.take('{1}', '{1}', '{3}')").isEmpty)
        // A lease that lies too far ahead is that of a clock that was set back.
        try expire("+ interval '40 s'")
        #expect(try parts(second.rows("SELECT * FROM tg.take('{1}', '{1}', '{3}')")) == [1])
        try expire("- interval '1 s'")
        #expect(try parts(second.rows("SELECT * FROM tg.take('{2}', '{1}', '{3}')")) == [2])
        let others = try second.rows("SELECT o_serving FROM tg.renew(false, '{}')").first
        #expect(try others?.integers(0) == [])
        // Released parts are anybody's.
        try second.execute("SELECT tg.release('{1,2}', '{2,1}')")
        #expect(
            try parts(first.rows("SELECT * FROM tg.take('{1,2}', '{}', '{}')")) == [1])
    }

    @Test func aFlushNamesTheGenerationAndToldOnlyRises() throws {
        let (fixture, first, second) = try nodes()
        #expect(try first.rows(Self.flush(5, clear: 4)).isEmpty)
        #expect(try first.rows(Self.flush(3, clear: 2)).isEmpty)
        func expect(told: Int64, clear: Int64, owed: Bool) throws {
            let row = try #require(try fixture.administration().rows(Self.state).first)
            #expect(try row.integer(0) == told)
            #expect(try row.integer(1) == clear)
            #expect(try row.boolean(2) == owed)
        }
        try expect(told: 5, clear: 4, owed: false)
        #expect(try first.rows(Self.flush(5, owed: true)).isEmpty)
        try expect(told: 5, clear: 4, owed: true)
        // Neither another node nor another generation writes.
        #expect(try parts(second.rows(Self.flush(9, clear: 9))) == [1])
        #expect(try parts(first.rows(Self.flush(9, generation: 2, clear: 9))) == [1])
        try first.execute("SELECT tg.release('{1}', '{1}')")
        #expect(try parts(first.rows(Self.flush(9, clear: 9))) == [1])
        #expect(try parts(first.rows("SELECT * FROM tg.take('{1}', '{}', '{}')")) == [1])
        #expect(try parts(first.rows(Self.flush(9, clear: 9))) == [1])
        try expect(told: 5, clear: 4, owed: true)
        // As nodes call it, a flush ends its transaction itself.
        let call = Self.flush(9, generation: 2, clear: 9)
            .replacing("SELECT * FROM tg.flush", with: "CALL tg.commit_flush")
            .replacing("array['\\x01'::bytea])", with: "array['\\x01'::bytea], NULL)")
        #expect(throws: PostgresError.self) { try first.execute("BEGIN; \(call)") }
        try first.execute("ROLLBACK")
        #expect(try first.rows(call).first?.integers(0) == [])
        try expect(told: 9, clear: 9, owed: false)
    }

    @Test func whatAnOlderConnectionOfANodeStillSendsIsRefused() throws {
        let (fixture, first, _) = try nodes()
        let later = try fixture.connection(as: "node1")
        try later.execute("SELECT tg.attach(1, false)")
        for statement in [
            Self.flush(5), "SELECT tg.renew(true, '{}')", "SELECT tg.take('{3}', '{}', '{}')",
            "SELECT tg.release('{1}', '{1}')",
            "SELECT tg.hear('{1}', '{a}', '{c}', '{true}', '{1}')",
        ] {
            #expect(throws: PostgresError.fenced, "\(statement)") {
                try first.execute(statement)
            }
        }
        // The same process keeps what it has.
        let answer = try later.rows("SELECT o_parts FROM tg.renew(true, '{}')").first
        #expect(try answer?.integers(0) == [1, 2, 4098])
        // Another process of the node waits for the lease, unless it has just been started.
        let other = try fixture.connection(as: "node1")
        #expect(throws: PostgresError.fenced) { try other.execute("SELECT tg.attach(9, false)") }
        try other.execute("SELECT tg.attach(9, true)")
        #expect(throws: PostgresError.fenced) { try later.execute(Self.flush(5)) }
        let after = try other.rows("SELECT o_parts FROM tg.renew(true, '{}')").first
        #expect(try after?.integers(0) == [])
        #expect(
            throws: PostgresError.wrongIsolation
        ) { try other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; \(Self.flush(5))") }
    }

    @Test func evidenceGoesAfterADayUnlessItsStreamIsOpen() throws {
        let (fixture, first, second) = try nodes()
        let hear = "SELECT tg.hear('{1,1}', '{a,a}', '{c,d}', '{%,true}', '{&,3}')"
        func sql(open: Bool, upTo: Int) -> String {
            hear.replacing("%", with: "\(open)").replacing("&", with: "\(upTo)")
        }
        try first.execute(sql(open: true, upTo: 7))
        try first.execute(sql(open: false, upTo: 6))
        let row = try #require(
            try first.rows("SELECT upto, open FROM tg.heard WHERE client = 'c'").first)
        #expect(try row.integer(0) == 7)
        #expect(try !row.boolean(1))
        let count = "SELECT count(*) FROM tg.heard"
        try second.execute("SELECT tg.forget_heard('{1}')")
        try fixture.wait(for: 2, count)
        try fixture.execute("UPDATE tg.heard SET at = at - interval '25 hours'")
        try second.execute("SELECT tg.forget_heard('{1}')")
        try fixture.wait(for: 1, count)
        // Its process is gone, so its stream is closed.
        try fixture.execute("UPDATE tg.node_seen SET process = 8 WHERE node = 1")
        try second.execute("SELECT tg.forget_heard('{1}')")
        try fixture.wait(for: 0, count)
    }

    @Test func oneNodeMakesAProviderTokenAndTheOthersReadIt() throws {
        let (fixture, first, second) = try nodes()
        func offer(_ node: PostgresAdministration, _ token: Int) throws -> (UInt8, Bool, Int64) {
            let row = try #require(
                try node.rows("SELECT * FROM tg.offer_token('key', '\\x0\(token)', 3000)").first)
            return (try #require(try row.bytes(0).first), try row.boolean(2), try row.integer(1))
        }
        #expect(try offer(first, 1).0 == 1)
        let read = try offer(second, 2)
        #expect(read.0 == 1)
        #expect(!read.1)
        #expect((2_900_000...3_000_000).contains(read.2))
        for end in ["- interval '1 s'", "+ interval '2 hours'"] {
            try fixture.execute("UPDATE tg.secret SET not_after = clock_timestamp() \(end)")
            #expect(try offer(second, 3).1)
            #expect(try !offer(first, 4).1)
            #expect(try offer(first, 4).0 == 3)
        }
    }
}
