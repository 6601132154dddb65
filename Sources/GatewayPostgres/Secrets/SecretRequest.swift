/// A request for the table of secrets.
package enum SecretRequest: PostgresRequest, Equatable {
    /// Reads all secrets.
    case read
    /// Adds a secret with this name, unless another one than the expected is the newest.
    case add(SecretRotation.Addition, name: String, wrapped: [UInt8])
    /// Removes the secrets that have ended.
    case dropEnded

    /// The answer to a ``SecretRequest``.
    package enum Answer: Sendable, Equatable {
        /// All secrets, and the server's time in seconds since 1970.
        case secrets([SecretRow], serverTime: Int64)
        /// Whether the secret was added.
        case added(Bool)
        case dropped
    }

    package static var statements: [PostgresStatement] { [reading, adding, dropping] }

    /// Rounded so that no secret is used too early, or dropped too early. The row without a secret
    /// has the time when there are none.
    private static let reading = PostgresStatement(
        "secrets",
        sql: """
            SELECT floor(extract(epoch FROM clock_timestamp()))::bigint, kind, name,
              ceil(extract(epoch FROM not_before))::bigint,
              ceil(extract(epoch FROM not_after))::bigint, wrapped
            FROM (VALUES (1)) one LEFT JOIN tg.secret ON true
            """)
    private static let adding = PostgresStatement(
        "add-secret",
        sql: """
            SELECT tg.add_secret($1::text, $2::text, $3::text, $4::bigint::int, $5::bigint::int,
              $6::bigint::int, $7::bytea)
            """)
    private static let dropping = PostgresStatement("drop-secrets", sql: "SELECT tg.drop_secrets()")

    package var query: PostgresQuery {
        switch self {
        case .read: PostgresQuery(Self.reading)
        case .add(let addition, let name, let wrapped):
            PostgresQuery(
                Self.adding,
                [
                    .text(addition.kind.rawValue), .text(name),
                    addition.newest.map { .text($0) } ?? .null, .integer(addition.lead),
                    .integer(addition.kept), .integer(addition.grace), .bytes(wrapped),
                ])
        case .dropEnded: PostgresQuery(Self.dropping)
        }
    }

    package func answer(_ rows: [PostgresRow]) throws(PostgresError) -> Answer {
        guard let first = rows.first else { throw .unexpectedAnswer }
        switch self {
        case .read:
            var secrets: [SecretRow] = []
            for row in rows where !row.isNull(1) {
                secrets.append(
                    SecretRow(
                        kind: try row.text(1), name: try row.text(2),
                        notBefore: try row.integer(3),
                        notAfter: row.isNull(4) ? nil : try row.integer(4),
                        wrapped: try row.bytes(5)))
            }
            return .secrets(secrets, serverTime: try first.integer(0))
        case .add: return .added(try first.boolean(0))
        case .dropEnded: return .dropped
        }
    }
}
