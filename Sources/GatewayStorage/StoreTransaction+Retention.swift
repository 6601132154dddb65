import Foundation
import GRDB
import GatewayCore

extension StoreTransaction {
    /// The maximum number of pages that one call of `prune` returns to the file system.
    private static let vacuumPagesMax = 512
    /// The number of free pages always kept for new rows. Beyond an eighth of the file, the rest is
    /// returned.
    private static let freePagesKept = 256

    /// Removes the oldest rows of the log: those accepted before `acceptedBefore`, and those beyond
    /// the newest `keepRows`. Stops at the first row to be kept, so that the rest has no gaps.
    ///
    /// Catalogs are removed with the rows that announced them, except each app's catalog in force
    /// at the oldest remaining row. The freed space is gradually returned to the file system.
    ///
    /// - Parameters:
    ///   - acceptedBefore: The time in ms since 1970.
    ///   - keepRows: The maximum number of rows to keep, whatever their age.
    ///   - limit: The maximum number of rows to remove in this call, which limits the wait of other
    ///     jobs.
    /// - Returns: The new floor; `nil` if nothing was removed. If it is `limit` above the previous
    ///   one, there may be more.
    package mutating func prune(
        acceptedBefore: Int64, keepRows: UInt64, limit: Int
    ) throws -> UInt64? {
        let oldFloor = floor
        let lastBeyond = head > keepRows ? head - keepRows : 0
        let (newFloor, forgotten) = try writing { db in
            try Self.forget(
                db, after: oldFloor, acceptedBefore: acceptedBefore, upTo: lastBeyond,
                limit: max(limit, 1))
        }
        if newFloor > oldFloor { floor = newFloor }
        for (app, bytes) in forgotten { stagedUsage.add(AppUsage(logBytes: -bytes), to: app) }
        try writing(Self.giveBackSpace)
        if newFloor > oldFloor { record(.prune(upTo: newFloor)) }
        return newFloor > oldFloor ? newFloor : nil
    }

    /// Removes the oldest rows and their catalogs.
    ///
    /// - Returns: The new floor, and the bytes of the removed payloads by app.
    private static func forget(
        _ db: Database, after floor: UInt64, acceptedBefore: Int64, upTo lastBeyond: UInt64,
        limit: Int
    ) throws -> (floor: UInt64, bytes: [String: Int]) {
        var newFloor = floor
        var bytes: [String: Int] = [:]
        var appsWithCatalogs: Set<String> = []
        let rows = try Row.fetchCursor(
            db.cachedStatement(
                sql: """
                    SELECT sequence, accepted_at, type, app, length(payload) FROM log
                    WHERE sequence > ? ORDER BY sequence LIMIT ?
                    """), arguments: [floor, limit])
        while let row = try rows.next() {
            let sequence: UInt64 = row[0]
            let acceptedAt: Int64 = row[1]
            guard sequence <= lastBeyond || acceptedAt < acceptedBefore else { break }
            newFloor = sequence
            bytes[row[3], default: 0] += row[4] ?? 0
            if row[2] == LogEntryType.catalog.rawValue { appsWithCatalogs.insert(row[3]) }
        }
        guard newFloor > floor else { return (floor, [:]) }
        try db.cachedStatement(sql: "DELETE FROM log WHERE sequence <= ?")
            .execute(arguments: [newFloor])
        try db.cachedStatement(sql: "UPDATE state SET floor = ?").execute(arguments: [newFloor])
        for app in appsWithCatalogs {
            let removed = try Int.fetchAll(
                db.cachedStatement(
                    sql: """
                        DELETE FROM catalog WHERE app = ? AND sequence < (
                            SELECT max(sequence) FROM catalog WHERE app = ? AND sequence <= ?)
                        RETURNING coalesce(length(payload), 0)
                        """), arguments: [app, app, newFloor])
            bytes[app, default: 0] += removed.reduce(0, +)
        }
        return (newFloor, bytes)
    }

    /// Returns free pages to the file system. A log in its steady state reuses the pages that
    /// pruning frees; only far more than that is worth moving pages.
    private static func giveBackSpace(_ db: Database) throws {
        let free = try Int.fetchOne(db.cachedStatement(sql: "PRAGMA freelist_count")) ?? 0
        let pages = try Int.fetchOne(db.cachedStatement(sql: "PRAGMA page_count")) ?? 0
        let excess = free - max(freePagesKept, pages / 8)
        guard excess > 0 else { return }
        try db.execute(sql: "PRAGMA incremental_vacuum(\(min(excess, vacuumPagesMax)))")
    }
}
