import ClusterTestSupport
import GatewayPostgres
import GatewayTestSupport

/// A connection for rounds on a thread of its own.
final class RoundFixture<Round: PostgresRound>: Sendable {
    private let loop: PostgresLoop
    private let rounds: PostgresRounds<Round>

    init(_ address: PostgresAddress) throws {
        loop = try PostgresLoop(name: "rounds")
        rounds = PostgresRounds(address, deadline: Int64(Patience.milliseconds), on: loop)
    }

    deinit { loop.end() }

    /// Runs a round and waits for its outcome.
    func run(_ round: Round) throws -> Round.Outcome {
        let answer = TestHTTPMonitor<Result<Round.Outcome, PostgresError>?>(nil)
        rounds.run(round) { outcome in answer.update { $0 = outcome } }
        guard let outcome = answer.wait(seconds: Patience.seconds, { $0 }) else {
            throw TestFailure("no outcome")
        }
        return try outcome.get()
    }
}

/// Appends batches by hand, as a node.
final class HandWriter {
    let connection: PostgresAdministration
    private let generation: Int64
    private var nextKey: UInt64 = 1

    init(_ cluster: ClusterFixture, login: String = "node1") throws {
        connection = try cluster.connection(as: login)
        let rows = try connection.rows("SELECT o_generation FROM tg.fence()")
        guard let generation = try rows.first?.integer(0) else { throw TestFailure("no fence") }
        self.generation = generation
    }

    /// Appends a batch, with an event for each change; makes slices where they are missing.
    @discardableResult
    func append(_ count: Int) throws -> LogPosition {
        try connection.execute("SELECT tg.slice()")
        let keys = (0..<count).map { _ in
            defer { nextKey += 1 }
            let digits = String(nextKey, radix: 16)
            return "'00000000-0000-0000-0000-\(String(repeating: "0", count: 12 - digits.count))"
                + "\(digits)'"
        }
        let places = (1...count).map { "\($0)" }.joined(separator: ",")
        let rows = try connection.rows(
            """
            SELECT o_last, o_chain FROM tg.append(\(generation), 7,
              '\\x000102030405060708090a0b0c0d0e0f', \(count), 0,
              array[\(keys.joined(separator: ","))]::uuid[], array[\(places)]::bigint[],
              array[\(places)]::int[], 'r')
            """)
        guard let row = rows.first else { throw TestFailure("no batch") }
        return LogPosition(last: try row.integer(0), chain: try row.chain(1))
    }

    /// Calls `reserve`.
    func reserve(_ position: LogPosition) throws -> Bool {
        let digits = String(position.chain, radix: 16)
        let chain = String(repeating: "0", count: 32 - digits.count) + digits
        let rows = try connection.rows(
            "SELECT tg.reserve(\(position.last), '\\x\(chain)')")
        return try rows.first?.boolean(0) ?? false
    }
}

extension PostgresRow {
    /// Reads the 16 bytes of a chain.
    fileprivate func chain(_ column: Int) throws -> UInt128 {
        try bytes(column).reduce(0) { $0 << 8 | UInt128($1) }
    }
}
