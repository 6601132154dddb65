import Foundation
import GRDB

/// A store's database as a single file without companion files.
package struct StoreCopy: Sendable, Equatable {
    /// The name of a store's database in its data directory.
    package static let fileName = SQLiteStore.fileName
    /// The number of pages (4 KiB each) copied between two progress reports.
    private static let pagesPerStep: CInt = 1_024

    /// The highest sequence in the copy.
    package let head: UInt64
    package let clients: Int
    /// The number of apps with a catalog in the copy.
    package let apps: Int

    /// Copies the database of a data directory, as of one point in time, into a new file of mode
    /// 0600.
    ///
    /// A gateway running on the directory continues without delay of its writes: everything is read
    /// in one transaction concurrent with the writer. Until that ends the write-ahead log grows by
    /// all new writes. The file is not made durable here.
    ///
    /// - Parameter progress: Called after every few megabytes with the copied and the total bytes.
    /// - Throws: `StoreError.unavailable`, `corrupt`.
    package static func make(
        of directory: String, to path: String,
        progress: @escaping (_ done: Int64, _ total: Int64) -> Void
    ) throws {
        let source = directory + "/" + fileName
        guard FileManager.default.fileExists(atPath: source) else {
            throw StoreError.unavailable(reason: "there is no \(source)")
        }
        try DirectoryLock.createPrivateFile(path: path)
        do {
            var configuration = Configuration()
            configuration.busyMode = .timeout(5)
            let original = try DatabaseQueue(path: source, configuration: configuration)
            let copy = try DatabaseQueue(path: path, configuration: configuration)
            try original.read { db in
                // The transaction begins here: every page is copied in its current state.
                let page = try Int64.fetchOne(db, sql: "PRAGMA page_size") ?? 4_096
                _ = try Int64.fetchOne(db, sql: "SELECT count(*) FROM sqlite_schema")
                try copy.writeWithoutTransaction { copy in
                    try db.backup(to: copy, pagesPerStep: pagesPerStep) {
                        progress(
                            Int64($0.completedPageCount) * page, Int64($0.totalPageCount) * page)
                    }
                    // The copy inherited the original's journal mode, which needs companion files.
                    try copy.execute(sql: "PRAGMA journal_mode = DELETE")
                }
            }
            try copy.close()
            try original.close()
        } catch let error as DatabaseError {
            // Only the copy is written, so these errors concern it.
            let isOfCopy = [.SQLITE_FULL, .SQLITE_READONLY].contains(error.resultCode)
            throw StoreError(
                error,
                files: StoreFiles(directory: isOfCopy ? parent(of: path) : directory))
        }
    }

    /// Returns the size of a copy of a data directory's database, bytes.
    ///
    /// - Throws: As ``make(of:to:progress:)``.
    package static func bytes(of directory: String) throws -> Int64 {
        let files = StoreFiles(directory: directory)
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(StoreConfiguration.busySeconds)
        return try StoreError.translating(files) {
            let database = try DatabaseQueue(path: files.database, configuration: configuration)
            defer { try? database.close() }
            return try database.read { db in
                let pages = try Int64.fetchOne(db, sql: "PRAGMA page_count") ?? 0
                return pages * (try Int64.fetchOne(db, sql: "PRAGMA page_size") ?? 4_096)
            }
        }
    }

    private static func parent(of path: String) -> String {
        let parent = (path as NSString).deletingLastPathComponent
        return parent.isEmpty ? "." : parent
    }

    /// Reads a complete copy and verifies its structure and indexes.
    ///
    /// - Throws: `StoreError.corrupt`, `newerVersion`, `unavailable`.
    package init(checking path: String) throws {
        try self.init(path, check: "integrity_check(1)")
    }

    /// Reads a database that may be in use, and verifies its structure without its indexes.
    ///
    /// - Throws: As ``init(checking:)``.
    package init(glancingAt path: String) throws {
        try self.init(path, check: "quick_check(1)")
    }

    private init(_ path: String, check: String) throws {
        var configuration = Configuration()
        configuration.readonly = true
        let (head, clients, apps) = try StoreError.translating(
            StoreFiles(directory: Self.parent(of: path))
        ) {
            let database = try DatabaseQueue(path: path, configuration: configuration)
            defer { try? database.close() }
            return try database.read { db in
                guard try String.fetchOne(db, sql: "PRAGMA \(check)") == "ok" else {
                    throw StoreError.corrupt(reason: "the integrity check failed")
                }
                guard try !Migrations.migrator.hasBeenSuperseded(db) else {
                    throw StoreError.newerVersion
                }
                return (
                    try SQLiteStore.position(db).head,
                    try Int.fetchOne(db, sql: "SELECT count(*) FROM registration") ?? 0,
                    try Int.fetchOne(db, sql: "SELECT count(DISTINCT app) FROM catalog") ?? 0
                )
            }
        }
        self.head = head
        self.clients = clients
        self.apps = apps
    }
}
