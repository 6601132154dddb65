/// A snapshot as its head announces it.
package struct SnapshotHead: Sendable, Equatable {
    /// The last batch that it contains.
    package var position: LogPosition
    /// The node that wrote its pieces.
    package var node: Int64
    /// The number of its pieces.
    package var parts: Int64
    package var format: Int64
    package var checksum: [UInt8]
    /// The sequence up to which its node knew nothing.
    package var floor: Int64
    /// The chain that the log has at the position; `nil` if it does not have the batch.
    package var logChain: UInt128?
    /// The time since it was written, by the server's clock, milliseconds.
    package var age: Int64 = 0

    /// The reason why it cannot be read, as far as its head tells; `nil` if it tells none.
    package var misfit: SnapshotReader.Misfit? {
        if format != NodeSnapshot.format { return .format(format) }
        return logChain == position.chain ? nil : .otherHistory
    }
}

/// A request of a writer or reader of snapshots.
package enum SnapshotRequest: PostgresRequest, Equatable {
    /// Keeps the log from a batch on.
    case reserve(LogPosition)
    /// Writes a piece of the snapshot at a position.
    case writePiece(at: Int64, part: Int64, [UInt8])
    /// Completes a snapshot.
    case finish(SnapshotHead)
    /// Reads the heads, the newest first, and the batch at the log's floor.
    case readHeads
    case endReservation
    case readPiece(of: SnapshotHead, part: Int64)

    /// The answer to a ``SnapshotRequest``.
    package enum Answer: Sendable, Equatable {
        /// Whether the log has the batch and keeps it.
        case reserved(Bool)
        case done
        /// The heads with the batch at the floor and the number of keys that a version window of the
        /// log remembers.
        case heads([SnapshotHead], floor: LogPosition, keysMax: Int64)
        /// The piece; `nil` if it is not there.
        case piece([UInt8]?)
    }

    package static var statements: [PostgresStatement] {
        [reserving, writing, finishing, heading, ending, reading]
    }

    private static let reserving = PostgresStatement(
        "reserve", sql: "SELECT tg.reserve($1::bigint, $2::bytea)")
    private static let writing = PostgresStatement(
        "write-piece", sql: "SELECT tg.write_piece($1::bigint, $2::bigint::int, $3::bytea)")
    private static let finishing = PostgresStatement(
        "finish-snapshot",
        sql: """
            SELECT tg.finish_snapshot($1::bigint, $2::bytea, $3::bigint, $4::bigint::int, $5::bytea,
              $6::bigint::int)
            """)
    private static let ending = PostgresStatement(
        "end-reservation", sql: "SELECT tg.end_reservation()")
    /// The row of the floor and the log's number of keys has no node.
    private static let heading = PostgresStatement(
        "heads",
        sql: """
            SELECT f.floor, l.chain, NULL, i.version_keys, NULL, NULL, NULL, NULL, NULL
            FROM tg.log_identity i, tg.log_floor f JOIN tg.log l ON l.last = f.floor
            UNION ALL (
              SELECT h.position, h.chain, h.node, h.parts, h.format, h.checksum, h.floor, l.chain,
                (extract(epoch FROM clock_timestamp() - h.written_at) * 1000)::bigint
              FROM tg.snapshot_head h LEFT JOIN tg.log l ON l.last = h.position
              ORDER BY h.position DESC)
            """)
    private static let reading = PostgresStatement(
        "read-piece",
        sql: """
            SELECT body FROM tg.snapshot
            WHERE position = $1::bigint AND node = $2::bigint AND part = $3::bigint
            """)

    package var query: PostgresQuery {
        switch self {
        case .reserve(let position):
            PostgresQuery(
                Self.reserving, [.integer(position.last), .bytes(position.chainBytes)])
        case .writePiece(let position, let part, let piece):
            PostgresQuery(Self.writing, [.integer(position), .integer(part), .bytes(piece)])
        case .finish(let head):
            PostgresQuery(
                Self.finishing,
                [
                    .integer(head.position.last), .bytes(head.position.chainBytes),
                    .integer(head.floor), .integer(head.format), .bytes(head.checksum),
                    .integer(head.parts),
                ])
        case .readHeads: PostgresQuery(Self.heading)
        case .endReservation: PostgresQuery(Self.ending)
        case .readPiece(let head, let part):
            PostgresQuery(
                Self.reading,
                [.integer(head.position.last), .integer(head.node), .integer(part)])
        }
    }

    package func answer(_ rows: [PostgresRow]) throws(PostgresError) -> Answer {
        switch self {
        case .reserve:
            guard let row = rows.first else { throw .unexpectedAnswer }
            return .reserved(try row.boolean(0))
        case .writePiece, .finish, .endReservation: return .done
        case .readHeads:
            var heads: [SnapshotHead] = []
            var floor: (position: LogPosition, keysMax: Int64)?
            for row in rows {
                let position = try LogPosition(row, column: 0)
                guard !row.isNull(2) else {
                    floor = (position, try row.integer(3))
                    continue
                }
                heads.append(
                    SnapshotHead(
                        position: position, node: try row.integer(2), parts: try row.integer(3),
                        format: try row.integer(4), checksum: try row.bytes(5),
                        floor: try row.integer(6), logChain: row.isNull(7) ? nil : try row.uuid(7),
                        age: try row.integer(8)))
            }
            guard let floor else { throw .unexpectedAnswer }
            heads.sort { $0.position.last > $1.position.last }
            return .heads(heads, floor: floor.position, keysMax: floor.keysMax)
        case .readPiece: return .piece(try rows.first?.bytes(0))
        }
    }
}

extension LogPosition {
    fileprivate var chainBytes: [UInt8] {
        withUnsafeBytes(of: chain.bigEndian) { Array($0) }
    }
}
