import GRDB

/// What can go wrong in the store. No case carries payloads, values or secrets.
package enum StoreError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Another process (or another store of this process) holds the data directory.
    case alreadyInUse
    /// The database was written by a newer version of the gateway, which this one cannot read.
    case newerVersion
    /// The disk refused: full, read-only, an input or output error. Nothing of the failed work is
    /// left behind, and the store takes work again as soon as the disk does.
    case unavailable(reason: String)
    /// What is on disk contradicts itself. Only an operator can decide what to do about it.
    case corrupt(reason: String)
    /// Too much is waiting for the disk already. Nothing was queued; try again later.
    case busy
    /// The store has been closed, or is closing.
    case closed
    /// The job asked for something the schema forbids, such as a second row for one event id.
    case rejected(reason: String)

    package var description: String {
        switch self {
        case .alreadyInUse: "the data directory is already in use by another process"
        case .newerVersion: "the data directory was written by a newer version of the gateway"
        case .unavailable(let reason): "the store is unavailable: \(reason)"
        case .corrupt(let reason): "the store is corrupt: \(reason)"
        case .busy: "the store is busy: too many jobs are waiting for the disk"
        case .closed: "the store is closed"
        case .rejected(let reason): "the store rejected the job: \(reason)"
        }
    }

    /// The meaning of an error of the embedded database.
    ///
    /// The description of a `DatabaseError` quotes the statement, so only its code and its
    /// message (which names columns, never values) are kept.
    init(_ error: DatabaseError) {
        let code = error.extendedResultCode.rawValue
        let reason = "SQLite error \(code): \(error.message ?? "no message")"
        self =
            switch error.resultCode {
            case .SQLITE_CONSTRAINT, .SQLITE_TOOBIG, .SQLITE_MISMATCH: .rejected(reason: reason)
            case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_FORMAT: .corrupt(reason: reason)
            default: .unavailable(reason: reason)
            }
    }

    /// Runs `body` and turns the errors of the embedded database into errors of the store.
    static func translating<T>(_ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch let error as DatabaseError {
            throw StoreError(error)
        }
    }
}
