import ClusterTestSupport
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayPostgres

/// Cursors are voided once, and only where the log lacks a batch that it had.
@Suite(.enabled(if: PostgresServer.isInstalled)) struct LostTailTests {
    private func logID(_ connection: PostgresAdministration) throws -> UInt128 {
        let row = try connection.rows("SELECT uuid_send(log_id) FROM tg.log_identity").first
        return try row?.bytes(0).reduce(0) { $0 << 8 | UInt128($1) } ?? 0
    }

    @Test func `evidence that the log lacks voids the cursors once`() throws {
        let cluster = try ClusterFixture()
        let connection = try cluster.administration()
        let writer = try HandWriter(cluster)
        let first = try writer.append(3)
        let second = try writer.append(2)
        try connection.execute(
            """
            INSERT INTO tg.catalog VALUES ('one', 1, 'c'), ('two', 2, 'c'), ('gone', 1, 'c'),
              ('gone', 4, NULL)
            """)
        let before = try logID(connection)
        var random = SplitMix64(seed: 1)
        func run(_ login: String, _ last: Int64, _ chain: UInt128) throws -> LostTailRound.Outcome {
            let tag = UInt32(truncatingIfNeeded: chain >> 96)
            let round = LostTailRound(
                before, evidence: BatchMark(last: last, tag: tag), using: &random
            ) { LogRecord(app: $0, .reload(scope: [1])) }
            return try RoundFixture(try cluster.address(user: login)).run(round)
        }
        // The log has this evidence, also in the middle of a batch.
        #expect(try run("node1", first.last, first.chain) == .unproven)
        #expect(try run("node1", second.last - 1, second.chain) == .unproven)
        #expect(try logID(connection) == before)
        // The log has not reached this sequence; one node notices, then the other.
        #expect(try run("node2", 6, second.chain) == .voided)
        let after = try logID(connection)
        #expect(after >> 96 > before >> 96)
        #expect(try run("node1", 6, second.chain) == .alreadyVoid)
        #expect(try logID(connection) == after)
        let rows = try connection.rows("SELECT last - first + 1 FROM tg.log ORDER BY last DESC")
        #expect(try rows.first?.integer(0) == 2)
        #expect(rows.count == 4)
        // A node that has not noticed may not write before it has read the new id.
        #expect(throws: PostgresError.self) { try writer.append(1) }
    }

    @Test func `another batch in its place is evidence`() throws {
        let cluster = try ClusterFixture()
        let position = try HandWriter(cluster).append(3)
        let logID = try logID(try cluster.administration())
        var random = SplitMix64(seed: 2)
        let tag = UInt32(truncatingIfNeeded: position.chain >> 96) ^ 1
        let round = LostTailRound(
            logID, evidence: BatchMark(last: 2, tag: tag), using: &random
        ) { LogRecord(app: $0, .reload(scope: [1])) }
        #expect(try RoundFixture(try cluster.address(user: "node1")).run(round) == .voided)
    }
}
