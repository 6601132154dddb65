/// A request that is a transaction of its own, with the form of its answer.
package protocol PostgresRequest: Sendable {
    /// The answer.
    associatedtype Answer: Sendable
    /// The statements that a session for these requests prepares.
    static var statements: [PostgresStatement] { get }
    var query: PostgresQuery { get }
    /// Reads the answer from the rows of the query.
    ///
    /// - Throws: `PostgresError.unexpectedAnswer` when a row or column is missing.
    func answer(_ rows: [PostgresRow]) throws(PostgresError) -> Answer
}
