/// A request for the token of a push provider that all nodes use: one node makes it, the others
/// take it over.
package enum ProviderTokenRequest: PostgresRequest, Equatable {
    /// Reads the token of a key.
    case read(key: String)
    /// Puts a token in force unless one is, for as long as it is valid.
    case offer(key: String, wrapped: [UInt8], seconds: Int32)

    package static var statements: [PostgresStatement] { [reading, offering] }

    private static let reading = PostgresStatement(
        "read-token",
        sql: """
            SELECT wrapped FROM tg.secret
            WHERE kind = 'provider-token' AND name = $1::text AND not_after > clock_timestamp()
            """)
    private static let offering = PostgresStatement(
        "offer-token",
        sql: "SELECT o_wrapped FROM tg.offer_token($1::text, $2::bytea, $3::bigint::int)")

    package var query: PostgresQuery {
        switch self {
        case .read(let key): PostgresQuery(Self.reading, [.text(key)])
        case .offer(let key, let wrapped, let seconds):
            PostgresQuery(
                Self.offering, [.text(key), .bytes(wrapped), .integer(Int64(seconds))])
        }
    }

    /// Returns the wrapped token in force; `nil` if there is none.
    package func answer(_ rows: [PostgresRow]) throws(PostgresError) -> [UInt8]? {
        guard let row = rows.first else { return nil }
        return try row.bytes(0)
    }
}

/// One request for a provider token.
package struct ProviderTokenRound: PostgresRound {
    private let request: ProviderTokenRequest

    package init(_ request: ProviderTokenRequest) { self.request = request }

    package mutating func begin() -> RoundStep<ProviderTokenRequest, [UInt8]?> { .send([request]) }

    package mutating func receive(
        _ answer: Result<[UInt8]?, PostgresError>
    ) -> RoundStep<ProviderTokenRequest, [UInt8]?> {
        switch answer {
        case .success(let wrapped): .end(wrapped)
        case .failure(let error): .fail(error)
        }
    }
}
