import ClusterTestSupport
import GatewayCore
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayPostgres

/// A writer that stops after a number of answers, as when the node is killed.
private struct InterruptedWriter: PostgresRound {
    var writer: SnapshotWriter
    var answersMax: Int

    mutating func begin() -> RoundStep<SnapshotRequest, SnapshotWriter.Outcome> { writer.begin() }

    mutating func receive(
        _ answer: Result<SnapshotRequest.Answer, PostgresError>
    ) -> RoundStep<SnapshotRequest, SnapshotWriter.Outcome> {
        answersMax -= 1
        return answersMax > 0 ? writer.receive(answer) : .fail(.deadline)
    }
}

@Suite struct SnapshotWriterTests {
    /// The head follows the confirmation of every piece, and few pieces are unanswered.
    @Test func theHeadComesLastAndFewPiecesAreUnderWay() throws {
        var random = SplitMix64(seed: 3)
        var snapshot = NodeSnapshot(position: LogPosition(last: 9, chain: 9), floor: 0)
        let versions = CompactedVersions(
            tables: [(0..<3_000).map { _ in .init(key: random.next(), sequence: 9) }])
        snapshot.apps = [
            .init(
                name: "a", history: .init(sequence: 1, kinds: [:], rules: [], retired: []),
                versions: versions)
        ]
        var writer = SnapshotWriter(snapshot, pieceBytes: 4_096)
        guard case .send(let first) = writer.begin(), first == [.reserve(snapshot.position)] else {
            throw TestFailure("the position is not reserved first")
        }
        var answers: [SnapshotRequest.Answer] = [.reserved(true)]
        var (pieces, confirmed): (Int64, Int64) = (0, 0)
        while !answers.isEmpty {
            let answer = answers.removeFirst()
            if answer == .done { confirmed += 1 }
            switch writer.receive(.success(answer)) {
            case .end(let outcome):
                #expect(outcome == .written(parts: pieces))
                #expect(pieces > 11)
                return
            case .fail(let error): throw error
            case .send(let requests):
                for request in requests {
                    switch request {
                    case .writePiece(_, let part, let piece):
                        #expect(part == pieces)
                        #expect(piece.count <= 4_096)
                        pieces += 1
                    case .finish(let head):
                        #expect(head.parts == pieces)
                        #expect(confirmed == pieces)
                    default: Issue.record("\(request)")
                    }
                    answers.append(.done)
                }
            }
            #expect(answers.count <= SnapshotWriter.windowMax)
        }
        Issue.record("the writer did not end")
    }

    /// Stopped at any answer, the writer sends no head, waits for what is under way and ends its
    /// reservation; a head that was sent before is not taken back.
    @Test(arguments: 0..<9) func aStoppedWriterSendsNoHead(answersBefore: Int) throws {
        var random = SplitMix64(seed: 5)
        var snapshot = NodeSnapshot(position: LogPosition(last: 9, chain: 9), floor: 0)
        snapshot.apps = [
            .init(
                name: "a", history: .init(sequence: 1, kinds: [:], rules: [], retired: []),
                versions: CompactedVersions(
                    tables: [(0..<900).map { _ in .init(key: random.next(), sequence: 9) }]))
        ]
        var isHeld = true
        let held = TestHTTPMonitor(true)
        var round = SnapshotRound.write(SnapshotWriter(snapshot, pieceBytes: 4_096)) {
            held.update { $0 }
        }
        guard case .send(var sent) = round.begin() else { throw TestFailure("nothing is sent") }
        var answered = 0
        while let request = sent.first {
            sent.removeFirst()
            if answered == answersBefore {
                isHeld = false
                held.update { $0 = false }
            }
            answered += 1
            let answer: SnapshotRequest.Answer =
                if case .reserve = request { .reserved(true) } else { .done }
            switch round.receive(.success(answer)) {
            case .send(let more):
                for case .finish in more { #expect(isHeld) }
                for case .writePiece in more { #expect(isHeld) }
                sent += more
            case .end(.written(.stopped)):
                #expect(request == .endReservation && sent.isEmpty && !isHeld)
                return
            case .end(let outcome):
                guard case .written(.written) = outcome, case .finish = request else {
                    throw TestFailure("\(outcome)")
                }
                return
            case .fail(let error): throw error
            }
        }
        Issue.record("the writer did not end")
    }
}

@Suite(.enabled(if: PostgresServer.isInstalled)) struct SnapshotTests {
    private let cluster: ClusterFixture
    private let log: HandWriter
    private let writers: RoundFixture<SnapshotWriter>
    private let readers: RoundFixture<SnapshotReader>
    private let positions: [LogPosition]

    init() throws {
        cluster = try ClusterFixture(slice: 10)
        log = try HandWriter(cluster)
        writers = try RoundFixture(try cluster.address(user: "node1"))
        readers = try RoundFixture(try cluster.address(user: "node2"))
        var positions: [LogPosition] = []
        for count in [8, 5, 7, 9, 4, 7, 5] { positions.append(try log.append(count)) }
        self.positions = positions
    }

    /// A snapshot of several pieces.
    private func snapshot(at index: Int) -> NodeSnapshot {
        var random = SplitMix64(seed: UInt64(index))
        var snapshot = NodeSnapshot.random(at: positions[index], using: &random)
        let versions = CompactedVersions(
            tables: [
                (0..<5_000).map { _ in .init(key: random.next(), sequence: 1 + UInt64(index)) }
            ])
        snapshot.apps.append(
            .init(
                name: "large", history: .init(sequence: 1, kinds: [:], rules: [], retired: []),
                versions: versions))
        return snapshot
    }

    private func read() throws -> SnapshotReader.Outcome {
        try readers.run(SnapshotReader())
    }

    private func integers(_ sql: String) throws -> [Int64] {
        try cluster.administration().rows(sql).map { try $0.integer(0) }
    }

    private var reservations: [Int64] {
        get throws { try integers("SELECT position FROM tg.reservation") }
    }

    @Test func theNewestOfTwoIsReadAndItsPositionReserved() throws {
        let empty = try read()
        #expect(empty.snapshot == nil)
        #expect(empty.position.last == 0)
        for index in [1, 3, 5] {
            guard
                case .written(let parts) = try writers.run(
                    SnapshotWriter(snapshot(at: index), pieceBytes: 6_000))
            else { throw TestFailure("refused") }
            #expect(parts > 10)
        }
        let heads = "SELECT position FROM tg.snapshot_head ORDER BY position"
        #expect(try integers(heads) == [29, 40])
        #expect(
            try integers("SELECT DISTINCT position FROM tg.snapshot ORDER BY 1") == [29, 40])
        let outcome = try read()
        #expect(outcome.snapshot?.content == snapshot(at: 5).content)
        #expect(outcome.position == positions[5])
        #expect(outcome.misfits == [:])
        // The reader's; the writer's ended with its snapshot.
        #expect(try reservations == [40])
        // The kept ones hold up the floor, and have their batches.
        #expect(try log.connection.rows("SELECT tg.retain(2)").first?.integer(0) == 20)
        #expect(try log.connection.rows("SELECT tg.retain(4)").first?.integer(0) == 20)
        // The same position once more is the same snapshot.
        guard case .written = try writers.run(SnapshotWriter(snapshot(at: 5), pieceBytes: 6_000))
        else {
            throw TestFailure("refused")
        }
        #expect(try integers(heads) == [29, 40])
        #expect(try read().snapshot?.content == snapshot(at: 5).content)
    }

    @Test(arguments: [1, 2, 5, 8, 13]) func aSnapshotThatBreaksOffIsNeverRead(answers: Int) throws {
        _ = try writers.run(SnapshotWriter(snapshot(at: 3), pieceBytes: 6_000))
        let interrupted = try RoundFixture<InterruptedWriter>(try cluster.address(user: "node1"))
        #expect(throws: PostgresError.deadline) {
            _ = try interrupted.run(
                InterruptedWriter(
                    writer: SnapshotWriter(snapshot(at: 5), pieceBytes: 6_000), answersMax: answers)
            )
        }
        let outcome = try read()
        #expect(outcome.position == positions[3])
        #expect(outcome.snapshot?.content == snapshot(at: 3).content)
        // The log is kept for it for a while, and its pieces go with the next snapshot.
        #expect(try reservations.contains(40))
        _ = try writers.run(SnapshotWriter(snapshot(at: 6), pieceBytes: 6_000))
        #expect(
            try integers("SELECT DISTINCT position FROM tg.snapshot ORDER BY 1") == [29, 45])
        #expect(try read().position == positions[6])
    }

    @Test func whatDoesNotFitIsPassedOver() throws {
        _ = try writers.run(SnapshotWriter(snapshot(at: 3), pieceBytes: 6_000))
        _ = try writers.run(SnapshotWriter(snapshot(at: 5), pieceBytes: 6_000))
        let copy = "CREATE TABLE saved AS SELECT * FROM tg.snapshot_head"
        try cluster.execute(copy)
        func expect(_ misfit: SnapshotReader.Misfit, after sql: String) throws {
            try cluster.execute(sql)
            let outcome = try read()
            #expect(outcome.misfits == [40: misfit], "\(sql)")
            #expect(outcome.position == positions[3])
            #expect(outcome.snapshot?.position == positions[3])
            try cluster.execute(
                "DELETE FROM tg.snapshot_head; INSERT INTO tg.snapshot_head SELECT * FROM saved")
        }
        let update = "UPDATE tg.snapshot_head SET"
        try expect(.format(2), after: "\(update) format = 2 WHERE position = 40")
        try expect(
            .otherHistory,
            after: "\(update) chain = '\\x000102030405060708090a0b0c0d0e0f' WHERE position = 40")
        try expect(.checksum, after: "\(update) checksum = '\\x00' WHERE position = 40")
        try expect(.checksum, after: "\(update) parts = parts - 1 WHERE position = 40")
        try expect(.missingPiece, after: "\(update) parts = parts + 1 WHERE position = 40")
        // A byte in the middle of a key.
        try expect(
            .checksum,
            after: """
                UPDATE tg.snapshot SET body = set_byte(body, 5000, get_byte(body, 5000) # 1)
                WHERE position = 40 AND part = (
                  SELECT max(part) - 2 FROM tg.snapshot WHERE position = 40)
                """)
        try cluster.execute("DELETE FROM tg.snapshot WHERE part = 3")
        let outcome = try read()
        #expect(outcome.misfits == [29: .missingPiece, 40: .missingPiece])
        #expect(outcome.snapshot == nil)
        #expect(outcome.position.last == 0)
        #expect(try reservations == [0])
    }

    @Test func aNodeWithAnotherHistoryWritesNothing() throws {
        var other = snapshot(at: 3)
        other.position = LogPosition(last: 29, chain: positions[3].chain ^ 1)
        #expect(try writers.run(SnapshotWriter(other, pieceBytes: 6_000)) == .refused)
        other.position = LogPosition(last: 28, chain: positions[3].chain)
        #expect(try writers.run(SnapshotWriter(other, pieceBytes: 6_000)) == .refused)
        #expect(try integers("SELECT position FROM tg.snapshot").isEmpty)
        // Not without a reservation either, and not for longer than it lasts.
        let piece = "SELECT tg.write_piece(29, 0, '\\x00')"
        let finish = "SELECT tg.finish_snapshot(29, '\\x00', 0, 1, '\\x00', 0)"
        func expectRefusal() {
            for sql in [piece, finish] {
                let error = #expect(throws: PostgresError.self) { try log.connection.execute(sql) }
                guard case .other("TG006", _) = error else {
                    Issue.record("\(sql): \(error.map { "\($0)" } ?? "accepted")")
                    continue
                }
            }
        }
        expectRefusal()
        #expect(try log.reserve(positions[3]))
        try log.connection.execute(piece)
        try cluster.execute("UPDATE tg.reservation SET until = clock_timestamp()")
        expectRefusal()
        #expect(try integers("SELECT position FROM tg.snapshot_head").isEmpty)
    }

    @Test func theServerCompletesOnlyASnapshotThatIsWholeAndOfItsHistory() throws {
        #expect(try log.reserve(positions[3]))
        let digits = String(positions[3].chain, radix: 16)
        let chain = String(repeating: "0", count: 32 - digits.count) + digits
        func finish(_ chain: String, _ count: Int) -> PostgresError? {
            do throws(PostgresError) {
                try log.connection.execute(
                    """
                    SELECT tg.finish_snapshot(29, '\\x\(chain)', 0, 1, '\\x00', \(count))
                    """)
                return nil
            } catch {
                return error
            }
        }
        for part in [0, 2] {
            try log.connection.execute("SELECT tg.write_piece(29, \(part), '\\x00')")
        }
        #expect(
            finish(chain, 3) == .other(sqlState: "TG006", message: "a piece is missing"))
        try log.connection.execute("SELECT tg.write_piece(29, 1, '\\x00')")
        #expect(
            finish(String(repeating: "0", count: 32), 3)
                == .other(sqlState: "TG006", message: "another history"))
        #expect(finish(chain, 3) == nil)
        #expect(try integers("SELECT position FROM tg.snapshot_head") == [29])
        #expect(try reservations.isEmpty)
    }

    @Test func twoWritersOfOnePositionDoNotMixTheirPieces() throws {
        // The tables of two nodes have other orders, so their pieces differ.
        let other = try RoundFixture<InterruptedWriter>(try cluster.address(user: "node2"))
        _ = try? other.run(
            InterruptedWriter(
                writer: SnapshotWriter(snapshot(at: 5), pieceBytes: 6_000), answersMax: 6))
        var mine = snapshot(at: 5)
        mine.apps.reverse()
        _ = try writers.run(SnapshotWriter(mine, pieceBytes: 6_000))
        #expect(try read().snapshot?.content == mine.content)
    }
}
