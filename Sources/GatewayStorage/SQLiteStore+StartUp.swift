import Foundation
import GRDB

/// The reads of a starting gateway, and the opening of its epoch. These calls block their thread.
extension SQLiteStore {
    /// Returns all stored epochs, oldest first.
    package func epochs() throws -> [EpochRow] {
        try readNow { db in
            try Row.fetchAll(db, sql: "SELECT * FROM epoch ORDER BY ordinal")
                .map(EpochRow.init)
        }
    }

    /// Returns the ordinal of the newest epoch; 0 without one.
    package func newestEpoch() throws -> Int64 { try epochs().last?.ordinal ?? 0 }

    /// Opens an epoch at the current head of the log. It is on disk when this returns.
    ///
    /// - Parameters:
    ///   - id: A random id that no epoch had before.
    ///   - ordinal: The smallest allowed ordinal; by default one more than the last epoch's.
    ///   - now: The time in ms since 1970.
    ///   - voidOlder: Whether the cursors of all previous epochs become void.
    package func openEpoch(
        id: UInt64, atLeast ordinal: Int64 = 0, now: Int64, voidOlder: Bool
    ) throws -> EpochRow {
        try writeNow { db in
            try Self.openEpoch(
                db, id: id, atLeast: ordinal, at: try Self.position(db).head, now: now,
                voidOlder: voidOlder, kept: configuration.epochsMax)
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
                sql: "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)",
                arguments: [voidPositions, isVoid])
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

    /// Returns whether the schema is the newest one; a start migrates an older one.
    package func hasNewestSchema() throws -> Bool {
        try readNow(Migrations.isComplete)
    }

    private static let noted = "rings"

    /// Returns the names of the key rings that exist beside the database; `nil` if none were ever
    /// recorded.
    package func notedRings() throws -> [String]? {
        try meta(Self.noted).map {
            String(decoding: $0, as: UTF8.self).split(separator: " ").map(String.init)
        }
    }

    /// Returns the value stored under a key of the database.
    package func meta(_ key: String) throws -> Data? {
        try readNow {
            try Data.fetchOne(
                $0, sql: "SELECT value FROM meta WHERE key = ?", arguments: [key])
        }
    }

    /// Records that key rings exist, in addition to those recorded before. It is on disk when this
    /// returns.
    package func noteRings(_ names: [String]) throws {
        let before = try notedRings() ?? []
        let after = Set(before).union(names).sorted()
        guard after != before else { return }
        try writeNow { db in
            try db.execute(
                sql: "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)",
                arguments: [Self.noted, Data(after.joined(separator: " ").utf8)])
        }
    }

    /// The database key that marks push positions as void.
    static let voidPositions = "void positions"
    static let isVoid = Data([1])

    /// Returns whether the stored push state predates an epoch that voided all cursors, so that its
    /// positions are void.
    package func hasVoidPositions() throws -> Bool { try meta(Self.voidPositions) != nil }

    /// Replaces void push states by current ones. They are on disk when this returns.
    package func replaceVoidPositions(with rows: [PushClientRow]) throws {
        try writeNow { db in
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

    /// Returns every stored catalog in the order of their sequences: the newest of each app, those
    /// whose rows are in the log, and those in force at the oldest row.
    package func catalogs() throws -> [CatalogRow] {
        try readNow { db in
            try Row.fetchAll(
                db, sql: "SELECT app, sequence, payload FROM catalog ORDER BY sequence"
            ).map(CatalogRow.init)
        }
    }

    /// Reads the log in order, from the first row after `sequence` (or after the floor) to the head
    /// at the time of the call, in batches limited by rows and by
    /// `StoreConfiguration.batchBytesMax`.
    ///
    /// - Parameters:
    ///   - batch: The maximum number of rows per call of `body`.
    ///   - body: Called with each batch, outside of any transaction; an error that it throws ends
    ///     the replay.
    /// - Throws: `StoreError.corrupt` if a row is missing.
    package func replay(
        after sequence: UInt64, batch: Int, _ body: (_ rows: [LogRow]) throws -> Void
    ) throws {
        let end = head
        var last = max(sequence, floor)
        while last < end {
            let after = last
            let rows = try readNow {
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
            let page = try readNow {
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
            guard let end = page.rows.last else { return }
            last = end.1
            try body(page.rows.map(\.0))
        }
    }

    /// Returns the head and the floor of the log. The head is not stored: rows are removed only
    /// from the oldest on, and the floor records how far.
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
