import GatewayPostgres

/// The tables of a cluster's log, as faults and their judge see them.
package struct ClusterTables: Sendable {
    private let cluster: ClusterFixture

    package init(_ cluster: ClusterFixture) { self.cluster = cluster }

    /// What is wrong with the log, in words; empty if it has no gap, names each batch once, and
    /// continues one chain.
    package func faults() throws -> [String] {
        let counts = try cluster.administration().rows(
            """
            SELECT count(*) FILTER (WHERE first <> before + 1),
              count(*) FILTER (WHERE first > last),
              count(*) - count(DISTINCT chain), count(*) - count(DISTINCT (node, batch))
            FROM (SELECT *, lag(last) OVER (ORDER BY last) AS before FROM tg.log) AS rows
            """
        ).first
        return try ["gaps", "empty batches", "doubled chains", "doubled batches"].enumerated()
            .compactMap { index, fault in
                let count = try counts?.integer(index) ?? -1
                return count == 0 ? nil : "the log has \(count) \(fault)"
            }
    }

    /// The number of parts that the log is kept in.
    package func slices() throws -> Int64 {
        try cluster.administration().rows(
            "SELECT count(*) FROM pg_inherits WHERE inhparent = 'tg.log'::regclass"
        ).first?.integer(0) ?? 0
    }

    /// Holds the log's tables, as a dump does, until the closure returns.
    ///
    /// - Parameter isLocked: Whether to lock them, or to hold an old snapshot only.
    package func hold(isLocked: Bool, _ body: () throws -> Void) throws {
        let dump = try cluster.administration()
        try dump.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        try dump.execute(
            isLocked
                ? "LOCK TABLE tg.log, tg.event IN ACCESS SHARE MODE" : "SELECT count(*) FROM tg.log"
        )
        try body()
        try dump.execute("COMMIT")
    }
}
