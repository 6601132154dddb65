import Foundation
import GRDB

/// Reads of the log concurrent with the writer. They see the state on disk when they begin, and
/// block no one.
extension SQLiteStore {
    private static let columns = "sequence, app, type, source, event_id, accepted_at, payload"

    /// Returns a row of the log; `nil` if it does not, or no longer, exist.
    package func logRow(_ sequence: UInt64) async throws -> LogRow? {
        try await reading { db in
            let statement = try db.cachedStatement(
                sql: "SELECT \(Self.columns) FROM log WHERE sequence = ?")
            return try Row.fetchOne(statement, arguments: [sequence]).map(LogRow.init)
        }
    }

    /// Returns changes of an app, the latest first.
    ///
    /// - Parameters:
    ///   - before: The upper limit of their sequences, exclusive.
    ///   - after: The lower limit of their sequences, exclusive.
    ///   - limit: The maximum number of rows; fewer if they would exceed
    ///     `StoreConfiguration.batchBytesMax`.
    ///   - scanMax: The maximum number of rows to scan, including those of other apps.
    /// - Returns: The changes, and the sequence before which to continue; `nil` at the beginning of
    ///   the log.
    package func changes(
        app: String, before: UInt64, after: UInt64 = 0, limit: Int, scanMax: UInt64 = 50_000
    ) async throws -> (rows: [LogRow], next: UInt64?) {
        let end = min(before, head + 1)
        let lowest = max(floor, after) + 1
        let first = max(lowest, end - min(end, scanMax))
        guard first < end else { return ([], nil) }
        let count = max(limit, 1)
        let page = try await reading { [self] db in
            try bounded(
                Row.fetchCursor(
                    db.cachedStatement(
                        sql: """
                            SELECT \(Self.columns) FROM log
                            WHERE sequence < ? AND sequence >= ? AND app = ? AND type = ?
                            ORDER BY sequence DESC LIMIT ?
                            """),
                    arguments: [end, first, app, LogEntryType.change.rawValue, count]),
                LogRow.init, bytes: \.payload.count)
        }
        let isWhole = !page.isCut && page.rows.count < count
        let next = isWhole ? first : page.rows.last?.sequence ?? first
        return (page.rows, next > lowest ? next : nil)
    }

    /// Returns rows of the log in order, after a sequence and up to another; at most `limit`, and
    /// fewer if they would exceed `StoreConfiguration.batchBytesMax`.
    package func log(after sequence: UInt64, through last: UInt64, limit: Int) async throws
        -> [LogRow]
    {
        try await reading { [self] db in
            try bounded(
                Row.fetchCursor(
                    db.cachedStatement(
                        sql: """
                            SELECT \(Self.columns) FROM log
                            WHERE sequence > ? AND sequence <= ? ORDER BY sequence LIMIT ?
                            """), arguments: [sequence, last, max(limit, 1)]),
                LogRow.init, bytes: \.payload.count
            ).rows
        }
    }

    /// Returns the last stored sequence that was accepted before a time, ms since 1970. Uses binary
    /// search, because times increase with sequences unless the clock was set.
    package func lastSequence(acceptedBefore moment: Int64) async throws -> UInt64 {
        let (floor, head) = (floor, head)
        return try await reading { db in
            let statement = try db.cachedStatement(
                sql: "SELECT accepted_at FROM log WHERE sequence = ?")
            var (low, high) = (floor, head)
            while low < high {
                let middle = high - (high - low) / 2
                let time = try Int64.fetchOne(statement, arguments: [middle])
                if let time, time >= moment { high = middle - 1 } else { low = middle }
            }
            return low
        }
    }

    /// Returns the catalog of an app that was in force for the log row at `sequence`; `nil` if it
    /// is not stored.
    package func catalog(app: String, at sequence: UInt64) async throws -> CatalogRow? {
        try await reading { db in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT app, sequence, payload FROM catalog
                    WHERE app = ? AND sequence < ? ORDER BY sequence DESC LIMIT 1
                    """)
            return try Row.fetchOne(statement, arguments: [app, sequence]).map(CatalogRow.init)
        }
    }
}
