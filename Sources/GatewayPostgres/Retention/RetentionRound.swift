/// One round of retention: slices ahead are made, the floor moves, then what lies below it is
/// removed, a table at a time.
package struct RetentionRound: PostgresRound {
    /// The result of a round.
    package struct Outcome: Sendable, Equatable {
        /// The number of tables that are still missing after slices were made: an alarm if it is
        /// not 0.
        package var missingSlices: Int64 = 0
        package var floor: Int64 = 0
        /// The tables that were detached or dropped.
        package var removals: [String] = []
        /// Whether a table is in use, such as by a dump; the next round tries again.
        package var isBlocked = false
    }

    /// The most tables that one round removes, so that it ends.
    private static let removalsMax = 64

    private let slicesKept: Int64
    private var outcome = Outcome()
    private var hasMadeSlices = false

    package init(slicesKept: Int64 = RetentionPlan.slicesKept) { self.slicesKept = slicesKept }

    package mutating func begin() -> RoundStep<RetentionRequest, Outcome> { .send([.readLog]) }

    package mutating func receive(
        _ answer: Result<RetentionRequest.Answer, PostgresError>
    ) -> RoundStep<RetentionRequest, Outcome> {
        switch answer {
        case .success(.log(let log)):
            let plan = RetentionPlan(log, slicesKept: slicesKept)
            outcome.missingSlices = log.missingSlices
            outcome.floor = log.floor
            if plan.needsSlice, !hasMadeSlices {
                hasMadeSlices = true
                return .send([.makeSlices])
            }
            return .send([plan.firstKept.map { .moveFloor(toSlice: $0) } ?? .removeTable])
        case .success(.made): return .send([.readLog])
        case .success(.floor(let floor)):
            outcome.floor = floor
            return .send([.removeTable])
        case .success(.removed(let table)):
            guard let table, outcome.removals.count < Self.removalsMax else { return .end(outcome) }
            outcome.removals.append(table)
            return .send([.removeTable])
        case .failure(.lockTimeout):
            outcome.isBlocked = true
            return .end(outcome)
        case .failure(let error): return .fail(error)
        }
    }
}
