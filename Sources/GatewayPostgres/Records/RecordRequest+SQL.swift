extension RecordRequest {
    package static var statements: [PostgresStatement] {
        [
            state, forwards, backwards, heads, catalog, registrations, registrationsByAttribute,
        ]
    }

    static let state = PostgresStatement(
        "state",
        sql: """
            SELECT floor, (SELECT chain FROM tg.log WHERE last = $1::bigint),
              set_config('plan_cache_mode', $2::text, false)
            FROM tg.log_floor
            """)

    static let forwards = batches("batches-forwards", order: "ASC")
    static let backwards = batches("batches-backwards", order: "DESC")

    /// The batch of the highest sequence ends at it or above. Lengths are known without reading the
    /// bodies, which are stored apart.
    private static func batches(_ name: String, order: String) -> PostgresStatement {
        PostgresStatement(
            name,
            sql: """
                SELECT first, last, chain, at, body FROM (
                  SELECT *, sum(length(body)) OVER (ORDER BY last \(order)) - length(body) AS before
                  FROM (
                    SELECT first, last, chain, at, body FROM tg.log
                    WHERE last >= $1::bigint AND last <= (
                      SELECT last FROM tg.log WHERE last >= $2::bigint ORDER BY last LIMIT 1)
                    ORDER BY last \(order) LIMIT \(batchesMax)) portion) sized
                WHERE before < \(bytesMax) ORDER BY last \(order)
                """)
    }

    static let heads = PostgresStatement(
        "heads",
        sql: """
            SELECT DISTINCT b.first, b.last, b.chain, b.at
            FROM unnest($1::bigint[]) k(sequence) CROSS JOIN LATERAL (
              SELECT first, last, chain, at FROM tg.log WHERE last >= k.sequence
              ORDER BY last LIMIT 1) b
            WHERE b.first <= k.sequence ORDER BY b.last
            """)

    static let catalog = PostgresStatement(
        "catalog",
        sql: """
            SELECT seq, payload FROM tg.catalog
            WHERE app = $1::text AND seq < $2::bigint AND seq > coalesce((
              SELECT max(r.seq) FROM tg.catalog r
              WHERE r.app = $1::text AND r.payload IS NULL AND r.seq <= $3::bigint), -1)
            ORDER BY seq DESC LIMIT 1
            """)

    static let registrations = listing("registrations", condition: "true")
    /// The values themselves are wrapped; the caller compares them.
    static let registrationsByAttribute = listing(
        "registrations-by-attribute", condition: "attrs @> ARRAY[$7::uuid]")

    private static func listing(_ name: String, condition: String) -> PostgresStatement {
        PostgresStatement(
            name,
            sql: """
                SELECT h.head, p.client, p.payload, p.updated_at, p.seen_day, p.found
                FROM (SELECT max(last) AS head FROM tg.log) h LEFT JOIN (
                  SELECT *, count(*) OVER () AS found,
                    sum(length(payload)) OVER (ORDER BY client COLLATE "C") - length(payload)
                      AS before
                  FROM (
                    SELECT client, payload, updated_at, seen_day FROM tg.live_registration
                    WHERE app = $1::text AND client COLLATE "C" > $2::text
                      AND client COLLATE "C" >= $3::text AND client COLLATE "C" < $4::text
                      AND \(condition)
                    ORDER BY client COLLATE "C" LIMIT $5::bigint) portion
                ) p ON p.before < $6::bigint
                ORDER BY p.client COLLATE "C"
                """)
    }
}
