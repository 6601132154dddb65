import Foundation

/// The files of a store on disk, and the space that is left beside them.
struct StoreFiles: Sendable, Equatable {
    /// The data directory.
    let directory: String

    /// The database.
    var database: String { directory + "/" + SQLiteStore.fileName }
    /// Its write-ahead log.
    var wal: String { database + "-wal" }

    /// Size of the database in bytes; 0 where there is none.
    var databaseBytes: Int64 { Self.size(database) }
    /// Size of the write-ahead log in bytes; 0 where there is none.
    var walBytes: Int64 { Self.size(wal) }

    private static func size(_ path: String) -> Int64 {
        var status = stat()
        return stat(path, &status) == 0 ? Int64(status.st_size) : 0
    }
}
