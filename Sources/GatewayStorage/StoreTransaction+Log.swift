import Foundation
import GRDB
import GatewayCore

extension StoreTransaction {
    /// Returns the row of an event, as long as it is in the log.
    ///
    /// - Parameter sequence: The sequence up to which rows are ignored.
    /// - Returns: Its sequence and payload; `nil` if the log does not contain the event.
    package mutating func event(
        app: String, source: String, id: String, after sequence: UInt64 = 0
    ) throws -> (sequence: UInt64, payload: Data)? {
        let key = fingerprint(app: app, source: source, id: id)
        var found: (UInt64, Data)?
        try run(.findEvent, [.integer(key)]) { row in
            let place = UInt64(bitPattern: row.integer(0))
            if found == nil, place > sequence, row.text(2) == app, row.text(3) == source,
                row.text(4) == id
            {
                found = (place, row.bytes(1))
            }
        }
        if found == nil { missing.insert(key) }
        return found
    }

    /// Appends a row to the log.
    ///
    /// - Parameters:
    ///   - source: Together with `eventID`, the key for `event(app:source:id:)`; `nil` for rows
    ///     that are not events.
    ///   - acceptedAt: The time in ms since 1970, which retention by age uses.
    /// - Returns: The assigned sequence, one more than the last.
    /// - Throws: `StoreError.rejected` if the log already contains the same event of this app, or
    ///   if a text contains a NUL; `StoreError.unavailable` if the disk refuses.
    @discardableResult
    package mutating func append(
        app: String, type: LogEntryType, source: String?, eventID: String?, acceptedAt: Int64,
        payload: Data
    ) throws -> UInt64 {
        try Self.requireNoNUL(in: app, source ?? "", eventID ?? "")
        if let source, let eventID {
            let fingerprint = fingerprint(app: app, source: source, id: eventID)
            if missing.remove(fingerprint) == nil,
                try event(app: app, source: source, id: eventID) != nil
            {
                throw StoreError.rejected(reason: "the log already contains this event")
            }
            missing.remove(fingerprint)
        }
        let row = LogRow(
            sequence: nextSequence, app: app, type: type, source: source, eventID: eventID,
            acceptedAt: acceptedAt, payload: payload)
        try insert(row)
        record(.append(row))
        return row.sequence
    }

    /// Inserts the next row of the log, whose event it does not contain.
    mutating func insert(_ row: LogRow) throws {
        var key = StatementValue.null
        if let source = row.source, let eventID = row.eventID {
            key = .integer(fingerprint(app: row.app, source: source, id: eventID))
        }
        try run(
            .appendRow,
            [
                .integer(Int64(bitPattern: row.sequence)), .text(row.app),
                .integer(Int64(row.type.rawValue)), .text(orNull: row.source),
                .text(orNull: row.eventID), key, .integer(row.acceptedAt), .bytes(row.payload),
            ])
        noteAppended(payloadBytes: row.payload.count, app: row.app)
    }

    /// Stores the catalog that is in force from the log row `sequence` on.
    ///
    /// - Parameter sequence: The return value of `append` for the row that announces it.
    package mutating func putCatalog(app: String, sequence: UInt64, payload: Data) throws {
        try Self.requireNoNUL(in: app)
        let replacedBytes = try writing { db in
            let replacedBytes = try Int.fetchOne(
                db.cachedStatement(
                    sql: "SELECT length(payload) FROM catalog WHERE app = ? AND sequence = ?"),
                arguments: [app, sequence])
            let statement = try db.cachedStatement(
                sql: """
                    INSERT INTO catalog (app, sequence, payload) VALUES (?, ?, ?)
                    ON CONFLICT (app, sequence) DO UPDATE SET payload = excluded.payload
                    """)
            try statement.execute(arguments: [app, sequence, payload])
            return replacedBytes ?? 0
        }
        stagedUsage.add(AppUsage(logBytes: payload.count - replacedBytes), to: app)
        record(.putCatalog(CatalogRow(app: app, sequence: sequence, payload: payload)))
    }

    /// Opens an epoch at the end of the log, including rows of this transaction.
    ///
    /// - Parameters:
    ///   - id: A random id that no epoch had before.
    ///   - ordinal: The smallest allowed ordinal.
    ///   - sequence: Where it begins, if not at the end of the log.
    ///   - now: The time in ms since 1970.
    ///   - voidsOlder: Whether the cursors of all previous epochs become void.
    ///   - kept: The number of epochs to keep.
    @discardableResult
    package mutating func openEpoch(
        id: UInt64, atLeast ordinal: Int64, at sequence: UInt64? = nil, now: Int64,
        voidsOlder: Bool, kept: Int
    ) throws -> EpochRow {
        let head = sequence ?? head
        let row = try writing { db in
            try SQLiteStore.openEpoch(
                db, id: id, atLeast: ordinal, at: head, now: now, voidOlder: voidsOlder, kept: kept)
        }
        record(.openEpoch(row, voidsOlder: voidsOlder, kept: Int64(kept)))
        return row
    }

    /// Returns the value stored under `key` with `setMeta`.
    package mutating func meta(_ key: String) throws -> Data? {
        try reading { db in
            let statement = try db.cachedStatement(sql: "SELECT value FROM meta WHERE key = ?")
            return try Row.fetchOne(statement, arguments: [key]).map { $0[0] ?? Data() }
        }
    }

    /// Stores `value` under `key`; `nil` removes it.
    package mutating func setMeta(_ key: String, _ value: Data?) throws {
        try writing { db in
            if let value {
                let statement = try db.cachedStatement(
                    sql: """
                        INSERT INTO meta (key, value) VALUES (?, ?)
                        ON CONFLICT (key) DO UPDATE SET value = excluded.value
                        """)
                try statement.execute(arguments: [key, value])
            } else {
                try db.cachedStatement(sql: "DELETE FROM meta WHERE key = ?")
                    .execute(arguments: [key])
            }
        }
        record(.setMeta(key, value))
    }
}
