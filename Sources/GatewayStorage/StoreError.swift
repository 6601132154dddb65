import Foundation
import GRDB
import GRDBSQLite
import GatewayCore

/// What can go wrong in the store. No case carries payloads, values or secrets.
package enum StoreError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Another process (or another store of this process) holds the data directory.
    case alreadyInUse
    /// The database was written by a newer version of the gateway, which this one cannot read.
    case newerVersion
    /// The disk refused: full, read-only, an input or output error. Nothing of the failed work is
    /// left behind, and the store takes work again as soon as the disk does.
    case unavailable(reason: String)
    /// The database is not there, where one is expected.
    case missing(reason: String)
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
        case .missing(let reason): "the store is missing: \(reason)"
        case .corrupt(let reason): "the store is corrupt: \(reason)"
        case .busy: "the store is busy: too many jobs are waiting for the disk"
        case .closed: "the store is closed"
        case .rejected(let reason): "the store rejected the job: \(reason)"
        }
    }

    /// Whether the disk refused.
    package var isUnavailable: Bool { if case .unavailable = self { true } else { false } }

    /// The meaning of an error of the embedded database.
    ///
    /// The description of a `DatabaseError` quotes the statement, so only its code and its
    /// message (which names columns, never values) are kept, with the file it is about.
    init(_ error: DatabaseError, files: StoreFiles?) {
        let reason = Self.reason(error, path: files?.database)
        switch error.resultCode {
        case .SQLITE_CONSTRAINT, .SQLITE_TOOBIG, .SQLITE_MISMATCH: self = .rejected(reason: reason)
        case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_FORMAT: self = .corrupt(reason: reason)
        case .SQLITE_FULL:
            self = .diskFull(
                files?.directory, free: files.flatMap { DiskSpace.freeBytes($0.directory) },
                needed: nil)
        default: self = .unavailable(reason: reason)
        }
    }

    /// A full disk, with what to do about it.
    ///
    /// - Parameters:
    ///   - directory: A directory on it; `nil` in memory.
    ///   - needed: Bytes that have to be free; `nil` if unknown.
    static func diskFull(_ directory: String?, free: Int64?, needed: Int64?) -> StoreError {
        guard let directory else { return .unavailable(reason: "the limit of its size is reached") }
        var reason = "the disk of \(directory) is full"
        if let free { reason += ": \(ByteCount.text(free)) free" }
        if let needed { reason += ", \(ByteCount.text(needed)) needed" }
        return .unavailable(reason: reason + ". Make room there; nothing stored is lost")
    }

    /// A failed call of the system, with the file it is about.
    ///
    /// - Parameter action: The past participle of what failed, such as "opened".
    static func system(_ path: String, notBeen action: String) -> StoreError {
        .unavailable(reason: "\(path) cannot be \(action): \(String(cString: strerror(errno)))")
    }

    private static func reason(_ error: DatabaseError, path: String?) -> String {
        let code = error.extendedResultCode.rawValue
        let general = String(cString: sqlite3_errstr(code))
        // The message may be that of another connection, on which all is well.
        let message = error.message.flatMap { $0 == "not an error" ? nil : $0 } ?? general
        let place = path.map { "\($0): " } ?? ""
        return "\(place)\(message) (SQLite error \(code))"
    }

    /// Runs `body` and turns the errors of the embedded database into errors of the store.
    static func translating<T>(_ files: StoreFiles?, _ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch let error as DatabaseError {
            throw StoreError(error, files: files)
        }
    }
}
