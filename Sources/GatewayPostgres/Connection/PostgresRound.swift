/// A series of requests with one outcome. A value without I/O, clock or lock.
package protocol PostgresRound: Sendable {
    /// The requests.
    associatedtype Request: PostgresRequest
    /// The outcome.
    associatedtype Outcome: Sendable
    /// Begins on an open connection.
    mutating func begin() -> RoundStep<Request, Outcome>
    /// Handles the answer to the first unanswered request.
    mutating func receive(
        _ answer: Result<Request.Answer, PostgresError>
    ) -> RoundStep<Request, Outcome>
}

package enum RoundStep<Request: Sendable, Outcome: Sendable>: Sendable {
    /// Send requests; none to wait for the answers under way.
    case send([Request])
    /// The round is over. Nothing may be unanswered then, unless the round failed.
    case end(Outcome)
    /// The round failed; the connection is given up.
    case fail(PostgresError)
}
