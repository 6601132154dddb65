/// Reads the newest snapshot that fits: the log has its chain at its position, and its checksum is
/// right. Otherwise the one before it; without any the node reads the log from its floor. The log is
/// reserved from there on.
package struct SnapshotReader: PostgresRound {
    /// The reason why a snapshot does not fit.
    package enum Misfit: Sendable, Equatable {
        /// Another program wrote it.
        case format(Int64)
        /// The log has another batch at its position, or none.
        case otherHistory
        case missingPiece
        /// Its bytes are not those that were written.
        case checksum
        /// It has the right checksum and is not a snapshot, or not one of the log's catalogs.
        case malformed
    }

    /// The result of reading.
    package struct Outcome: Sendable {
        /// The snapshot; `nil` if none fits.
        package var snapshot: NodeSnapshot?
        /// The age of the snapshot, milliseconds.
        package var age: Int64 = 0
        /// The number of keys that a version window of the log remembers.
        package var keysMax: Int
        /// The batch after which the log is to be read.
        package var position: LogPosition
        /// The snapshots that do not fit, the newest first.
        package var misfits: [Int64: Misfit]
    }

    private enum Phase {
        case heading
        case reserving(SnapshotHead?)
        case reading(SnapshotHead)
    }

    /// The most pieces under way, which bounds the memory.
    static let windowMax = 4
    /// The attempts to reserve before the log's floor moves past them.
    private static let attemptsMax = 5

    private var keysMax = 0
    private var phase = Phase.heading
    private var heads: ArraySlice<SnapshotHead> = []
    private var floor = LogPosition(last: 0, chain: 0)
    private var attempts = 0
    private var misfits: [Int64: Misfit] = [:]
    private var decoder = SnapshotDecoder(keysMax: 0)
    private var checksum = SnapshotChecksum()
    private var asked: Int64 = 0
    private var unanswered = 0
    /// The reason to give up the snapshot that is being read.
    private var misfit: Misfit?

    /// Creates a reader.
    ///
    /// - Parameter misfits: The snapshots to pass over, by position.
    package init(passingOver misfits: [Int64: Misfit] = [:]) { self.misfits = misfits }

    package mutating func begin() -> RoundStep<SnapshotRequest, Outcome> { .send([.readHeads]) }

    package mutating func receive(
        _ answer: Result<SnapshotRequest.Answer, PostgresError>
    ) -> RoundStep<SnapshotRequest, Outcome> {
        let value: SnapshotRequest.Answer
        switch answer {
        case .success(let success): value = success
        case .failure(let error): return .fail(error)
        }
        switch (phase, value) {
        case (.heading, .heads(let heads, let floor, let keysMax)):
            self.heads = heads[...]
            self.floor = floor
            self.keysMax = Int(clamping: keysMax)
            return nextHead()
        case (.reserving(let head), .reserved(true)):
            guard let head else {
                return .end(
                    Outcome(snapshot: nil, keysMax: keysMax, position: floor, misfits: misfits))
            }
            phase = .reading(head)
            decoder = SnapshotDecoder(keysMax: keysMax)
            checksum = SnapshotChecksum()
            (asked, misfit) = (0, nil)
            return proceed(head)
        case (.reserving, .reserved(false)):
            // The floor moved meanwhile.
            attempts += 1
            guard attempts < Self.attemptsMax else { return .fail(.unexpectedAnswer) }
            phase = .heading
            return .send([.readHeads])
        case (.reading(let head), .piece(let piece)):
            unanswered -= 1
            if misfit == nil { append(piece) }
            return proceed(head)
        default: return .fail(.unexpectedAnswer)
        }
    }

    private mutating func nextHead() -> RoundStep<SnapshotRequest, Outcome> {
        while let head = heads.popFirst() {
            if misfits[head.position.last] != nil { continue }
            if let misfit = head.misfit {
                misfits[head.position.last] = misfit
            } else {
                phase = .reserving(head)
                return .send([.reserve(head.position)])
            }
        }
        phase = .reserving(nil)
        return .send([.reserve(floor)])
    }

    private mutating func append(_ piece: [UInt8]?) {
        guard let piece else {
            misfit = .missingPiece
            return
        }
        do {
            try checksum.append(piece)
        } catch {
            misfit = .checksum
            return
        }
        do throws(SnapshotDecoder.Fault) {
            try decoder.append(piece)
        } catch {
            misfit = .malformed
        }
    }

    /// Asks for more pieces, or ends the snapshot after the last answer.
    private mutating func proceed(_ head: SnapshotHead) -> RoundStep<SnapshotRequest, Outcome> {
        var requests: [SnapshotRequest] = []
        while misfit == nil, unanswered < Self.windowMax, asked < head.parts {
            requests.append(.readPiece(of: head, part: asked))
            asked += 1
            unanswered += 1
        }
        guard unanswered == 0 else { return .send(requests) }
        if misfit == nil, (try? checksum.value()) != head.checksum { misfit = .checksum }
        if misfit == nil, let snapshot = try? decoder.finish(), snapshot.position == head.position {
            return .end(
                Outcome(
                    snapshot: snapshot, age: head.age, keysMax: keysMax, position: head.position,
                    misfits: misfits))
        }
        misfits[head.position.last] = misfit ?? .malformed
        return nextHead()
    }
}
