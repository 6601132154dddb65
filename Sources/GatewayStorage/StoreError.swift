import Foundation
import GRDB
import GRDBSQLite
import GatewayCore

/// An error of the store. No case contains payloads, values or secrets.
package enum StoreError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Another process, or another store of this process, uses the data directory.
    case alreadyInUse
    /// The database was written by a newer version of the gateway, which this one cannot read.
    case newerVersion
    /// The disk refused an operation: it is full or read-only, or an input or output error
    /// occurred. The failed work is undone, and the store accepts work again as soon as the disk
    /// does.
    case unavailable(reason: String)
    /// The expected database does not exist.
    case missing(reason: String)
    /// The data on disk is inconsistent. Only an operator can decide how to proceed.
    case corrupt(reason: String)
    /// Too many jobs are waiting for the disk. Nothing was queued; retry later.
    case busy
    case closed
    /// Another store of the cluster writes the log now.
    case notLeading
    /// The log of the cluster did not confirm the write, which may be in it.
    case unconfirmed(reason: String)
    /// The job violates the schema, for example with a second row for the same event id.
    case rejected(reason: String)

    package var description: String {
        switch self {
        case .alreadyInUse: "the data directory is already in use by another process"
        case .newerVersion: "the data directory was written by a newer version of the gateway"
        case .unavailable(let reason): "the store is unavailable: \(reason)"
        case .missing(let reason): "the store is missing: \(reason)"
        case .corrupt(let reason): "the store is corrupt: \(reason)"
        case .busy: "the store is busy: the write queue is full"
        case .closed: "the store is closed"
        case .notLeading: "another node writes the log"
        case .unconfirmed(let reason): "the log did not confirm the write: \(reason)"
        case .rejected(let reason): "the store rejected the job: \(reason)"
        }
    }

    /// Whether the disk refused the operation.
    package var isUnavailable: Bool { if case .unavailable = self { true } else { false } }

    /// Whether the log of the cluster, and not the disk, refused the operation.
    var isOfCluster: Bool {
        switch self {
        case .notLeading, .unconfirmed: true
        default: false
        }
    }

    /// Translates an error of the embedded database.
    ///
    /// The description of a `DatabaseError` quotes the statement, so only its code and its message
    /// (which names columns, never values) are used, with the file that it concerns.
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

    /// Returns the error for a full disk, with its remedy.
    ///
    /// - Parameters:
    ///   - directory: A directory on the disk; `nil` in memory.
    ///   - needed: The free bytes required; `nil` if unknown.
    static func diskFull(_ directory: String?, free: Int64?, needed: Int64?) -> StoreError {
        guard let directory else { return .unavailable(reason: "its size limit is reached") }
        var reason = "the disk of \(directory) is full"
        if let free { reason += ": \(ByteCount.text(free)) free" }
        if let needed { reason += ", \(ByteCount.text(needed)) needed" }
        return .unavailable(reason: reason + ". Free space there; nothing stored is lost")
    }

    /// Returns the error for a failed system call, with the file that it concerns.
    ///
    /// - Parameter action: The past participle of the failed action, such as "opened".
    static func system(_ path: String, notBeen action: String) -> StoreError {
        .unavailable(reason: "\(path) cannot be \(action): \(String(cString: strerror(errno)))")
    }

    private static func reason(_ error: DatabaseError, path: String?) -> String {
        let code = error.extendedResultCode.rawValue
        let general = String(cString: sqlite3_errstr(code))
        // The message may belong to another connection without an error.
        let message = error.message.flatMap { $0 == "not an error" ? nil : $0 } ?? general
        let place = path.map { "\($0): " } ?? ""
        return "\(place)\(message) (SQLite error \(code))"
    }

    /// Runs `body` and translates errors of the embedded database into errors of the store.
    static func translating<T>(_ files: StoreFiles?, _ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch let error as DatabaseError {
            throw StoreError(error, files: files)
        }
    }
}
