import Foundation
import GRDB
import GatewayCore

extension StoreTransaction {
    /// Most pages given back to the file system by one call of `prune`.
    private static let vacuumPagesMax = 512
    /// Free pages that are always left for new rows; above an eighth of the file, the rest goes.
    private static let freePagesKept = 256

    /// Forgets the oldest rows of the log: those accepted before `acceptedBefore`, and those
    /// beyond the newest `keepRows`. Stops at the first row that is to be kept, so that what is
    /// left has no gaps.
    ///
    /// Catalogs go with the rows that announced them, except the one of each app that is in force
    /// at the oldest row left. Space that this frees is given back to the file system bit by bit.
    ///
    /// - Parameters:
    ///   - acceptedBefore: Milliseconds since 1970.
    ///   - keepRows: Most rows to keep, however young.
    ///   - limit: Most rows to forget in this call, which bounds how long other jobs wait.
    /// - Returns: the new floor, or `nil` if nothing was to be forgotten. If it is `limit` above
    ///   the one before, there may be more.
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
        return newFloor > oldFloor ? newFloor : nil
    }

    /// Removes the oldest rows, and the catalogs that go with them.
    ///
    /// - Returns: The new floor, and the bytes of the payloads removed, by app.
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

    /// A log in its steady state fills the pages that pruning frees; only what is far more than
    /// that is worth moving pages around.
    private static func giveBackSpace(_ db: Database) throws {
        let free = try Int.fetchOne(db.cachedStatement(sql: "PRAGMA freelist_count")) ?? 0
        let pages = try Int.fetchOne(db.cachedStatement(sql: "PRAGMA page_count")) ?? 0
        let excess = free - max(freePagesKept, pages / 8)
        guard excess > 0 else { return }
        try db.execute(sql: "PRAGMA incremental_vacuum(\(min(excess, vacuumPagesMax)))")
    }
}
