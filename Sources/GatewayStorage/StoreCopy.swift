import Foundation
import GRDB

/// A store's database as one file that needs no other beside it.
package struct StoreCopy: Sendable, Equatable {
    /// The name of a store's database within its data directory.
    package static let fileName = SQLiteStore.fileName
    /// Pages (4 KiB each) copied between two words of progress.
    private static let pagesPerStep: CInt = 1_024

    /// Highest sequence in it.
    package let head: UInt64
    /// Clients registered in it.
    package let clients: Int
    /// Apps with a catalog in it.
    package let apps: Int

    /// Copies the database of a data directory, as it is at one moment, into a new file of mode 0600.
    ///
    /// Whoever runs on the directory goes on, and no write of it waits: all is read in one
    /// transaction beside the writer. Until that ends the write-ahead log keeps growing, by what is
    /// written meanwhile. The file is not made durable here.
    ///
    /// - Parameter progress: Told after each few megabytes how many bytes of how many are copied.
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
                // The transaction begins here: every page is copied as it is now.
                let page = try Int64.fetchOne(db, sql: "PRAGMA page_size") ?? 4_096
                _ = try Int64.fetchOne(db, sql: "SELECT count(*) FROM sqlite_schema")
                try copy.writeWithoutTransaction { copy in
                    try db.backup(to: copy, pagesPerStep: pagesPerStep) {
                        progress(
                            Int64($0.completedPageCount) * page, Int64($0.totalPageCount) * page)
                    }
                    // The original's way, with companion files, came along.
                    try copy.execute(sql: "PRAGMA journal_mode = DELETE")
                }
            }
            try copy.close()
            try original.close()
        } catch let error as DatabaseError {
            // Only the copy is written to.
            let isOfCopy = [.SQLITE_FULL, .SQLITE_READONLY].contains(error.resultCode)
            throw StoreError(
                error,
                files: StoreFiles(directory: isOfCopy ? parent(of: path) : directory))
        }
    }

    /// Returns the bytes that a copy of a data directory's database takes.
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

    /// Reads the whole of a copy and holds what it says of itself against each other.
    ///
    /// - Throws: `StoreError.corrupt`, `newerVersion`, `unavailable`.
    package init(checking path: String) throws {
        try self.init(path, check: "integrity_check(1)")
    }

    /// Reads a database that may be in use, and holds its structure, not its indexes, against each
    /// other.
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
