import GatewayCluster

/// The facts about a database that the messages of its replication slot leave out.
struct FeedDatabase {
    /// The published tables, as SQL reads their names.
    var published: Set<String> = []
    /// Those with a partition whose log has less than whole rows: its NULL may be any value.
    var partial: Set<String> = []
    /// The database's own types, with the type of PostgreSQL whose values have the same texts.
    var types: [UInt32: UInt32] = [:]

    init() {}

    init(_ connection: ReplicationConnection, publication: String) throws(PostgresError) {
        let tables = try connection.rows(
            """
            SELECT schemaname, tablename, EXISTS (
              SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
                pg_partition_tree(c.oid) p JOIN pg_class leaf ON leaf.oid = p.relid
              WHERE nspname = schemaname AND c.relname = tablename AND isleaf
                AND leaf.relreplident <> 'f')
            FROM pg_publication_tables WHERE pubname = '\(publication)'
            """)
        for table in tables {
            let name = SQL.name(try table.text(0), try table.text(1))
            published.insert(name)
            if try table.text(2) == "t" { partial.insert(name) }
        }
        // Enumerations, `citext`, and domains.
        let types = try connection.rows(
            """
            WITH RECURSIVE own(oid, base) AS (
              SELECT oid, CASE WHEN oid >= 16384 AND (typtype = 'e' OR typname = 'citext') THEN 25
                ELSE oid END
              FROM pg_type WHERE typtype <> 'd'
              UNION ALL SELECT d.oid, base FROM pg_type d JOIN own ON d.typbasetype = own.oid
              WHERE d.typtype = 'd')
            SELECT oid, base FROM own WHERE oid >= 16384 AND base < 16384
            """)
        for type in types {
            guard let own = UInt32(try type.text(0)), let base = UInt32(try type.text(1)) else {
                throw .unexpectedAnswer
            }
            self.types[own] = base
        }
    }

    /// Returns a complaint about each table of a mapping whose changes the server does not send.
    func complaints(of mapping: FeedMapping) -> [String] {
        mapping.tables.map(\.quotedName).filter { !published.contains($0) }.map {
            "\($0) is not published: its changes are not posted; run what `timelinectl feed init` "
                + "prints, or correct the mapping, and start `feed run` again"
        }
    }
}
