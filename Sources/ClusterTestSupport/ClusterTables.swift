import GatewayCluster

/// The tables of a cluster's log, as faults and their judge see them.
package struct ClusterTables: Sendable {
    private let cluster: ClusterFixture

    package init(_ cluster: ClusterFixture) { self.cluster = cluster }

    /// The faults of the log, as text; empty if it has no gap and names each batch once.
    package func faults() throws -> [String] {
        let counts = try cluster.administration().rows(
            """
            SELECT count(*) FILTER (WHERE number <> before + 1 AND number > newest - 10000),
              count(*) FILTER (WHERE head < head_before), count(*) - count(DISTINCT id)
            FROM (
              SELECT *, max(number) OVER () AS newest, lag(number) OVER (ORDER BY number) AS before,
                lag(head) OVER (ORDER BY number) AS head_before
              FROM timeline.batch) AS rows
            """
        ).first
        return try ["gaps", "heads that fall", "doubled batches"].enumerated()
            .compactMap { index, fault in
                let count = try counts?.integer(index) ?? -1
                return count == 0 ? nil : "the log has \(count) \(fault)"
            }
    }

    /// Holds an old snapshot of the log, as a dump does, until the closure returns.
    package func hold(_ body: () throws -> Void) throws {
        let dump = try cluster.administration()
        try dump.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        try dump.execute("SELECT count(*) FROM timeline.batch")
        try body()
        try dump.execute("COMMIT")
    }
}
