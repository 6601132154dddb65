import GatewaySigning

/// Writes a snapshot: it reserves the position, writes the pieces, a few at a time, and the head
/// last. What breaks off in between is never read.
package struct SnapshotWriter: PostgresRound {
    /// The result of writing.
    package enum Outcome: Sendable, Equatable {
        /// The snapshot has this number of pieces and may be read.
        case written(parts: Int64)
        /// The server's log does not have the position: it has another history, or lost it.
        case refused
        /// The writer was stopped before the head was sent; what it wrote is never read.
        case stopped
    }

    /// The most pieces under way, which bounds the memory.
    static let windowMax = 4

    private let position: LogPosition
    private let floor: Int64
    private var encoder: SnapshotEncoder
    private var checksum = SnapshotChecksum()
    private var parts: Int64 = 0
    private var unanswered = 0
    private var isFinishing = false
    private var isStopped = false

    /// Creates a writer.
    ///
    /// - Parameter pieceBytes: The size of a piece, at least 64.
    package init(_ snapshot: NodeSnapshot, pieceBytes: Int = NodeSnapshot.pieceBytes) {
        position = snapshot.position
        floor = snapshot.floor
        encoder = SnapshotEncoder(snapshot, pieceBytes: pieceBytes)
    }

    /// Sends no more pieces and no head from here on; the reservation of the log ends.
    package mutating func stop() { isStopped = true }

    package mutating func begin() -> RoundStep<SnapshotRequest, Outcome> {
        .send([.reserve(position)])
    }

    package mutating func receive(
        _ answer: Result<SnapshotRequest.Answer, PostgresError>
    ) -> RoundStep<SnapshotRequest, Outcome> {
        switch answer {
        case .success(.reserved(false)): return .end(.refused)
        case .success(.done) where isStopped && unanswered == 0 && !isFinishing:
            return .end(.stopped)
        case .success(.reserved(true)): return next()
        case .success(.done):
            guard !isFinishing else { return .end(.written(parts: parts)) }
            unanswered -= 1
            return next()
        case .success: return .fail(.unexpectedAnswer)
        case .failure(let error): return .fail(error)
        }
    }

    /// Sends pieces while few are unanswered, and the head after the answer to the last one.
    private mutating func next() -> RoundStep<SnapshotRequest, Outcome> {
        var requests: [SnapshotRequest] = []
        guard !isStopped else { return .send(unanswered == 0 ? [.endReservation] : []) }
        do throws(SigningError) {
            while unanswered < Self.windowMax, let piece = encoder.next() {
                try checksum.append(piece)
                requests.append(.writePiece(at: position.last, part: parts, piece))
                parts += 1
                unanswered += 1
            }
            if unanswered == 0 {
                isFinishing = true
                let head = SnapshotHead(
                    position: position, node: 0, parts: parts, format: NodeSnapshot.format,
                    checksum: try checksum.value(), floor: floor)
                requests.append(.finish(head))
            }
        } catch {
            return .fail(.connectionLost(reason: error.message))
        }
        return .send(requests)
    }
}
