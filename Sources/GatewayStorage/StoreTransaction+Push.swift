import Foundation
import GRDB

extension StoreTransaction {
    /// Stores the push states of clients, replacing previous ones.
    ///
    /// - Throws: `StoreError.rejected` if a text contains a NUL; `unavailable` if the disk refuses.
    package mutating func putPushClients(_ rows: some Sequence<PushClientRow>) throws {
        for row in rows {
            try Self.requireNoNUL(in: row.key.app, row.key.client)
            let key: [StatementValue] = [.text(row.key.app), .text(row.key.client)]
            if let payload = row.payload {
                try run(.putPushClient, key + [.bytes(payload)])
            } else {
                try run(.removePushClient, key)
            }
            record(.putPushClient(row))
        }
    }

    /// Stores the sequence up to which clients are owed only what their push states say.
    package mutating func putPushes(clearUpTo sequence: UInt64) throws {
        try setMeta(SQLiteStore.pushesClear, Data(String(sequence).utf8))
    }

    /// Replaces void push states by current ones.
    package mutating func replaceVoidPositions(with rows: [PushClientRow]) throws {
        try putPushClients(rows.lazy.filter { $0.payload != nil })
        try setMeta(SQLiteStore.voidPositions, nil)
    }

    /// Appends attempts, which get their numbers here unless they have one.
    package mutating func appendPushAttempts(_ rows: some Sequence<PushAttemptRow>) throws {
        for row in rows {
            // A peer's text that is read only up to a NUL is acceptable here.
            try run(
                .appendPushAttempt,
                [
                    row.number == 0 ? .null : .integer(row.number), .integer(row.at),
                    .text(row.key.app), .text(row.key.client), .text(row.channel),
                    .text(row.outcome), .text(orNull: row.reason), .text(orNull: row.reference),
                    .integer(row.milliseconds),
                    row.sequence.map { .integer(Int64(clamping: $0)) } ?? .null,
                    .text(orNull: row.cause),
                ])
            var stored = row
            stored.number = connection.database.lastInsertedRowID
            record(.appendPushAttempt(stored))
        }
    }

    /// Removes the oldest attempts: those before `endedBefore`, and those beyond the newest
    /// `keepRows`, at most `limit` of them.
    ///
    /// - Parameter endedBefore: The time in ms since 1970.
    /// - Returns: The number of removed attempts; if that is `limit`, there may be more.
    package mutating func prunePushAttempts(
        endedBefore: Int64, keepRows: Int64, limit: Int
    ) throws -> Int {
        let count = try writing { db in
            let newest =
                try Int64.fetchOne(
                    db.cachedStatement(sql: "SELECT max(number) FROM push_attempt")) ?? 0
            let oldest =
                try Int64.fetchOne(
                    db.cachedStatement(sql: "SELECT min(number) FROM push_attempt")) ?? 1
            let lastBeyond = newest - max(keepRows, 0)
            try db.cachedStatement(
                sql: """
                    DELETE FROM push_attempt
                    WHERE number < ? AND (number <= ? OR at < ?)
                    """
            ).execute(arguments: [oldest + Int64(max(limit, 1)), lastBeyond, endedBefore])
            return db.changesCount
        }
        if count > 0 {
            record(
                .prunePushAttempts(
                    endedBefore: endedBefore, keepRows: keepRows, limit: Int64(limit)))
        }
        return count
    }

    /// Replaces a provider token, if the stored token of its issuer is still the old one.
    ///
    /// - Returns: The token that is then stored: the new one, or the one of a faster process.
    package mutating func replaceProviderToken(
        _ old: String?, with row: ProviderTokenRow
    ) throws -> ProviderTokenRow {
        let known: ProviderTokenRow? = try reading { db in
            let known = try Row.fetchOne(
                db, sql: "SELECT issued_at, token FROM provider_token WHERE issuer = ?",
                arguments: [row.issuer])
            if let known, known[1] != old {
                return ProviderTokenRow(
                    issuer: row.issuer, issuedAt: known[0], token: known[1])
            }
            return nil
        }
        if let known { return known }
        try putProviderToken(row)
        return row
    }

    /// Stores a provider token in place of any other of its issuer.
    mutating func putProviderToken(_ row: ProviderTokenRow) throws {
        try writing { db in
            try db.cachedStatement(
                sql: """
                    INSERT INTO provider_token (issuer, issued_at, token) VALUES (?, ?, ?)
                    ON CONFLICT (issuer)
                    DO UPDATE SET issued_at = excluded.issued_at, token = excluded.token
                    """
            ).execute(arguments: [row.issuer, row.issuedAt, row.token])
        }
        record(.putProviderToken(row))
    }
}
