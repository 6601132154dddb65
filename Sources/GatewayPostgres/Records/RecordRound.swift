/// A batch by the beginning of its chain.
package struct BatchMark: Sendable, Equatable {
    /// The last sequence of the batch.
    package let last: Int64
    package let tag: UInt32

    package init(last: Int64, tag: UInt32) {
        self.last = last
        self.tag = tag
    }
}

/// One reading, believed only if the server has the history that the node has applied: then
/// everything up to there is durable, and never changes.
struct RecordRound: PostgresRound {
    /// The result of a reading.
    struct Outcome: Sendable {
        var floor: Int64
        var answer: RecordRequest.Answer
    }

    private let known: BatchMark
    private let request: RecordRequest
    private var floor: Int64?

    /// - Parameter known: The newest batch that the node has applied.
    init(_ request: RecordRequest, known: BatchMark) {
        self.request = request
        self.known = known
    }

    mutating func begin() -> RoundStep<RecordRequest, Outcome> {
        .send([.readState(at: known.last, request.planMode), request])
    }

    mutating func receive(
        _ answer: Result<RecordRequest.Answer, PostgresError>
    ) -> RoundStep<RecordRequest, Outcome> {
        switch answer {
        case .failure(let error): return .fail(error)
        case .success(.state(let floor, let chain)) where self.floor == nil:
            guard let chain, LogPosition(last: known.last, chain: chain).tag == known.tag else {
                return .fail(
                    .connectionLost(
                        reason: "the server does not have the history that this node has applied"
                    ))
            }
            self.floor = floor
            return .send([])
        case .success(let answer):
            guard let floor else { return .fail(.unexpectedAnswer) }
            return .end(Outcome(floor: floor, answer: answer))
        }
    }
}
