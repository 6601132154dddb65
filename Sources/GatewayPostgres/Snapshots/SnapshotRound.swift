/// A task of a node for the snapshots of its fleet. All of them share one connection.
package enum SnapshotRound: PostgresRound {
    /// Reads what snapshots there are.
    case readHeads
    /// Writes a snapshot while `isHeld` returns `true`: the lease of that task is the node's.
    case write(SnapshotWriter, isHeld: @Sendable () -> Bool)
    /// Ends the reservation of the log that the node made at its start.
    case endReservation

    /// The result of a task.
    package enum Outcome: Sendable, Equatable {
        /// The snapshots, the newest first.
        case heads([SnapshotHead])
        case written(SnapshotWriter.Outcome)
        case reservationEnded
    }

    package mutating func begin() -> RoundStep<SnapshotRequest, Outcome> {
        switch self {
        case .readHeads: return .send([.readHeads])
        case .write(var writer, let isHeld):
            defer { self = .write(writer, isHeld: isHeld) }
            return Self.step(writer.begin())
        case .endReservation: return .send([.endReservation])
        }
    }

    package mutating func receive(
        _ answer: Result<SnapshotRequest.Answer, PostgresError>
    ) -> RoundStep<SnapshotRequest, Outcome> {
        switch (self, answer) {
        case (.readHeads, .success(.heads(let heads, _, _))): return .end(.heads(heads))
        case (.write(var writer, let isHeld), _):
            defer { self = .write(writer, isHeld: isHeld) }
            if !isHeld() { writer.stop() }
            return Self.step(writer.receive(answer))
        case (.endReservation, .success(.done)): return .end(.reservationEnded)
        case (_, .failure(let error)): return .fail(error)
        case (_, .success): return .fail(.unexpectedAnswer)
        }
    }

    private static func step(
        _ step: RoundStep<SnapshotRequest, SnapshotWriter.Outcome>
    ) -> RoundStep<SnapshotRequest, Outcome> {
        switch step {
        case .send(let requests): .send(requests)
        case .end(let outcome): .end(.written(outcome))
        case .fail(let error): .fail(error)
        }
    }
}
