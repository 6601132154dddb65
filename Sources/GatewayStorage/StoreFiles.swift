import Foundation

/// The files of a store on disk, with their sizes.
struct StoreFiles: Sendable, Equatable {
    let directory: String

    var database: String { directory + "/" + SQLiteStore.fileName }
    /// The path of its write-ahead log.
    var wal: String { database + "-wal" }

    /// The size of the database, bytes; 0 if it does not exist.
    var databaseBytes: Int64 { Self.size(database) }
    /// The size of the write-ahead log, bytes; 0 if it does not exist.
    var walBytes: Int64 { Self.size(wal) }

    /// Whether a process ended without closing the store, or still has it open: closing copies the
    /// write-ahead log into the database and removes it.
    var isLeftOpen: Bool { walBytes > 0 }

    /// Removes the database; whatever else is in the directory stays.
    func remove() throws {
        for path in [database, wal, database + "-shm"] where Self.exists(path) {
            try FileManager.default.removeItem(atPath: path)
        }
    }

    private static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    private static func size(_ path: String) -> Int64 {
        var status = stat()
        return stat(path, &status) == 0 ? Int64(status.st_size) : 0
    }
}
