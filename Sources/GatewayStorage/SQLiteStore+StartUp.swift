import Foundation
import GRDB

/// What a gateway reads, and the epoch it opens, before it accepts anything. These calls block
/// their thread.
extension SQLiteStore {
    /// All epochs that are kept, oldest first.
    package func epochs() throws -> [EpochRow] {
        try whileOpen {
            try database.read { db in
                try Row.fetchAll(db, sql: "SELECT * FROM epoch ORDER BY ordinal")
                    .map(EpochRow.init)
            }
        }
    }

    /// Opens an epoch at the current head of the log. It is on disk when this returns.
    ///
    /// - Parameters:
    ///   - id: A random name that no epoch had before.
    ///   - ordinal: At least one more than the last epoch's; that by default.
    ///   - now: Milliseconds since 1970.
    ///   - voidOlder: Whether the cursors of all epochs before it say nothing any more.
    package func openEpoch(
        id: UInt64, atLeast ordinal: Int64 = 0, now: Int64, voidOlder: Bool
    ) throws -> EpochRow {
        try whileOpen {
            try database.write { db in
                try Self.openEpoch(
                    db, id: id, atLeast: ordinal, at: try Self.position(db).head, now: now,
                    voidOlder: voidOlder, kept: configuration.epochsMax)
            }
        }
    }

    /// Opens an epoch within a transaction.
    static func openEpoch(
        _ db: Database, id: UInt64, atLeast ordinal: Int64, at head: UInt64, now: Int64,
        voidOlder: Bool, kept: Int
    ) throws -> EpochRow {
        if voidOlder {
            try db.execute(sql: "UPDATE epoch SET voided = 1")
            try db.execute(
                sql: "INSERT OR REPLACE INTO meta (key, value) VALUES (?, x'01')",
                arguments: [voidPositions])
        }
        let last = try Int64.fetchOne(db, sql: "SELECT max(ordinal) FROM epoch") ?? 0
        let epoch = EpochRow(
            ordinal: max(last + 1, ordinal), id: id, openedAtSequence: head, isVoid: false,
            openedAt: now)
        try db.execute(
            sql: """
                INSERT INTO epoch (ordinal, id, opened_at_sequence, voided, opened_at)
                VALUES (?, ?, ?, 0, ?)
                """,
            arguments: [epoch.ordinal, Int64(bitPattern: id), epoch.openedAtSequence, now])
        try db.execute(
            sql: """
                DELETE FROM epoch WHERE ordinal NOT IN
                    (SELECT ordinal FROM epoch ORDER BY ordinal DESC LIMIT ?)
                """,
            arguments: [Int64(max(kept, 1))])
        return epoch
    }

    /// Whether the schema is the newest one; an older one is brought up to date by a start.
    package func hasNewestSchema() throws -> Bool {
        try whileOpen { try database.read(Migrations.isComplete) }
    }

    private static let noted = "rings"

    /// Names of the rings of keys that exist beside the database; `nil` if none were ever noted.
    package func notedRings() throws -> [String]? {
        try whileOpen {
            try database.read { db in
                try Data.fetchOne(
                    db, sql: "SELECT value FROM meta WHERE key = ?", arguments: [Self.noted]
                ).map { String(decoding: $0, as: UTF8.self).split(separator: " ").map(String.init) }
            }
        }
    }

    /// Notes that rings of keys exist, beside those noted before. It is on disk when this returns.
    package func noteRings(_ names: [String]) throws {
        let before = try notedRings() ?? []
        let after = Set(before).union(names).sorted()
        guard after != before else { return }
        try whileOpen {
            try database.write { db in
                try db.execute(
                    sql: "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)",
                    arguments: [Self.noted, Data(after.joined(separator: " ").utf8)])
            }
        }
    }

    /// What says that pushes start anew.
    private static let voidPositions = "void positions"

    /// Whether what is kept of pushed clients is from before an epoch that voided all cursors: up to
    /// where they were told says nothing any more.
    package func hasVoidPositions() throws -> Bool {
        try whileOpen {
            try database.read { db in
                try Bool.fetchOne(
                    db, sql: "SELECT count(*) FROM meta WHERE key = ?",
                    arguments: [Self.voidPositions]) ?? false
            }
        }
    }

    /// Puts what is known of pushed clients in the place of what was void. It is on disk when this
    /// returns.
    package func replaceVoidPositions(with rows: [PushClientRow]) throws {
        try whileOpen {
            try database.write { db in
                let statement = try db.makeStatement(
                    sql: """
                        INSERT OR REPLACE INTO push_client (app, client, payload) VALUES (?, ?, ?)
                        """)
                for row in rows where row.payload != nil {
                    try statement.execute(arguments: [row.key.app, row.key.client, row.payload])
                }
                try db.execute(
                    sql: "DELETE FROM meta WHERE key = ?", arguments: [Self.voidPositions])
            }
        }
    }

    /// Every catalog that is kept, in the order of their sequences: the newest of each app, those
    /// whose rows are in the log, and those in force at the oldest row.
    package func catalogs() throws -> [CatalogRow] {
        try whileOpen {
            try database.read { db in
                try Row.fetchAll(
                    db, sql: "SELECT app, sequence, payload FROM catalog ORDER BY sequence"
                ).map(CatalogRow.init)
            }
        }
    }

    /// Reads the log in order, from the first row after `sequence` (or after the floor) to the
    /// head at the time of the call, in batches bounded by rows and by
    /// `StoreConfiguration.batchBytesMax`.
    ///
    /// - Parameters:
    ///   - batch: Most rows per call of `body`.
    ///   - body: Called with each batch, outside of any transaction; what it throws ends the replay.
    /// - Throws: `StoreError.corrupt` if a row is missing.
    package func replay(
        after sequence: UInt64, batch: Int, _ body: (_ rows: [LogRow]) throws -> Void
    ) throws {
        let end = head
        var last = max(sequence, floor)
        while last < end {
            let after = last
            let rows = try whileOpen {
                try database.read {
                    try bounded(
                        Row.fetchCursor(
                            $0.cachedStatement(
                                sql: """
                                    SELECT sequence, app, type, source, event_id, accepted_at,
                                        payload
                                    FROM log WHERE sequence > ? AND sequence <= ?
                                    ORDER BY sequence LIMIT ?
                                    """), arguments: [after, end, max(batch, 1)]),
                        LogRow.init, bytes: \.payload.count)
                }
            }
            for row in rows.rows {
                guard row.sequence == last + 1 else {
                    throw StoreError.corrupt(reason: "the log has a gap after \(last)")
                }
                last = row.sequence
            }
            guard last > after else {
                throw StoreError.corrupt(reason: "the log ends at \(last) before its head")
            }
            try body(rows.rows)
        }
    }

    /// Reads all registrations, in no particular order, in batches as `replay` does.
    package func registrations(
        batch: Int = 1_000, _ body: (_ rows: [RegistrationRow]) throws -> Void
    ) throws {
        var last: Int64 = 0
        while true {
            let after = last
            let page = try whileOpen {
                try database.read {
                    try bounded(
                        Row.fetchCursor(
                            $0.cachedStatement(
                                sql: """
                                    SELECT r.app, r.client, r.payload, r.updated_at, s.seen_at,
                                        r.rowid
                                    FROM registration r
                                    JOIN registration_seen s USING (app, client)
                                    WHERE r.rowid > ? ORDER BY r.rowid LIMIT ?
                                    """), arguments: [after, max(batch, 1)]),
                        { (try RegistrationRow($0), $0[5] as Int64) }, bytes: \.0.payload.count)
                }
            }
            guard let end = page.rows.last else { return }
            last = end.1
            try body(page.rows.map(\.0))
        }
    }

    /// Where the log stands. The head needs no row of its own: rows are only ever removed from
    /// the oldest on, and the floor remembers how far.
    static func position(_ db: Database) throws -> (head: UInt64, floor: UInt64) {
        guard let floor = try UInt64.fetchOne(db, sql: "SELECT floor FROM state") else {
            throw StoreError.corrupt(reason: "the state row is missing")
        }
        let oldest = try UInt64.fetchOne(db, sql: "SELECT min(sequence) FROM log")
        let newest = try UInt64.fetchOne(db, sql: "SELECT max(sequence) FROM log")
        if let oldest, oldest != floor + 1 {
            throw StoreError.corrupt(reason: "the log begins at \(oldest), its floor is \(floor)")
        }
        return (newest ?? floor, floor)
    }
}
