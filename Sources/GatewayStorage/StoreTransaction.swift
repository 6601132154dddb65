import Foundation
import GRDB
import GatewayCore

/// A job's access to the store, within the transaction that it shares with other jobs.
///
/// A job sees the changes of previous jobs in the same transaction. If it throws, its changes are
/// undone and the others are not affected: if it had changed anything, the transaction restarts and
/// they run once more. If the disk fails, all of them are undone together. A transaction is valid
/// only while its job runs.
package struct StoreTransaction: ~Copyable {
    /// The connection of the writer, inside an open transaction.
    var connection: WriterConnection
    /// The files named in disk errors; `nil` in memory.
    private let files: StoreFiles?
    /// The fingerprints that index events.
    let fingerprint: EventFingerprint
    /// The fingerprints of events that `event(app:source:id:)` did not find and that have not been
    /// appended since, so that `append` need not search for them again.
    var missing: Set<Int64> = []
    /// The highest sequence, including rows of this transaction.
    private(set) var head: UInt64
    /// The highest sequence ever pruned, including this transaction.
    var floor: UInt64
    private(set) var rows = 0
    /// The bytes of the payloads of the added rows.
    private(set) var payloadBytes = 0
    /// The usage of every app, including this transaction.
    var stagedUsage: StagedUsage
    /// The closures passed to `afterCommit`, in order.
    private(set) var effects: [@Sendable () -> Void] = []
    /// The closure passed to `afterEffects`.
    private(set) var conclusion: (@Sendable () -> Void)?
    /// The reason why this transaction can no longer be committed; `nil` if it can.
    private(set) var failure: StoreError?

    /// The operations of the jobs, for the other stores of a cluster; `nil` without others.
    private(set) var operations: [StoreOperation]?
    /// The author of the current job's changes.
    private var author = StoreAuthor.ordinary

    /// The state at the beginning of the current job.
    private var mark = Mark()
    /// Whether the current job has changed anything.
    private var hasWritten = false

    private struct Mark {
        var head: UInt64 = 0
        var floor: UInt64 = 0
        var rows = 0
        var payloadBytes = 0
        var effects = 0
        var operations = 0
    }

    init(
        connection: WriterConnection, files: StoreFiles?, fingerprint: EventFingerprint,
        head: UInt64, floor: UInt64, usage: UsageTable, isShared: Bool
    ) {
        operations = isShared ? [] : nil
        self.connection = connection
        self.files = files
        self.fingerprint = fingerprint
        self.head = head
        self.floor = floor
        stagedUsage = StagedUsage(committed: usage)
    }

    /// Returns the registrations and log bytes of an app, including this transaction.
    package func usage(of app: String) -> AppUsage { stagedUsage.usage(of: app) }

    /// The sequence that the next call of `append` will assign.
    package var nextSequence: UInt64 { head + 1 }

    /// Calls `effect` on the writer's thread once the transaction is on disk, before its result
    /// reaches any caller, and after the closures of previous jobs. It is never called if the job
    /// or the transaction fails. It must return soon, because the next transaction waits for it,
    /// and must not wait for a write.
    package mutating func afterCommit(_ effect: @escaping @Sendable () -> Void) {
        effects.append(effect)
    }

    /// Calls `body` on the writer's thread after the closures passed to `afterCommit`, once for all
    /// jobs of the transaction: of several closures the last one set.
    package mutating func afterEffects(_ body: @escaping @Sendable () -> Void) {
        conclusion = body
    }

    /// Rejects texts that contain a NUL: the embedded database returns them truncated there, so
    /// that they would not be found again.
    static func requireNoNUL(in texts: String...) throws {
        for var text in texts where text.withUTF8({ $0.contains(0) }) {
            throw StoreError.rejected(reason: "a text holds a NUL")
        }
    }

    mutating func reading<T>(_ body: (Database) throws -> T) throws -> T {
        try guarding { try body($0.database) }
    }

    /// Changes the database; the changes are undone if the job fails later.
    mutating func writing<T>(_ body: (Database) throws -> T) throws -> T {
        if case .refused(let error) = author { throw error }
        hasWritten = true
        return try guarding { try body($0.database) }
    }

    /// Runs a frequent statement; see ``WriterConnection/run(_:_:row:)``.
    mutating func run(
        _ statement: WriterStatement, _ values: [StatementValue],
        row: (ResultRow) throws -> Void = { _ in }
    ) throws {
        if statement.isWrite {
            if case .refused(let error) = author { throw error }
            hasWritten = true
        }
        try guarding { try $0.run(statement, values, row: row) }
    }

    /// Records what the job just did, for the other stores of a cluster.
    mutating func record(_ operation: @autoclosure () -> StoreOperation) {
        guard operations != nil, case .ordinary = author else { return }
        operations?.append(operation())
    }

    /// Sets the position of an empty log whose rows other stores removed.
    package mutating func begin(at sequence: UInt64) throws {
        guard head == floor else { throw StoreError.rejected(reason: "the log has rows") }
        try writing { try $0.execute(sql: "UPDATE state SET floor = ?", arguments: [sequence]) }
        (head, floor) = (sequence, sequence)
    }

    /// Records a row that was just inserted with `nextSequence`.
    mutating func noteAppended(payloadBytes count: Int, app: String) {
        head += 1
        rows += 1
        payloadBytes += count
        stagedUsage.add(AppUsage(logBytes: count), to: app)
    }

    /// Writes dummy bytes to find out whether the disk accepts writes.
    mutating func writeProbe(bytes: Int) throws {
        try writing { db in
            try db.cachedStatement(
                sql: "INSERT OR REPLACE INTO meta (key, value) VALUES ('probe', randomblob(?))"
            ).execute(arguments: [bytes])
        }
        payloadBytes += bytes
    }

    mutating func beginJob(by author: StoreAuthor) {
        self.author = author
        mark = Mark(
            head: head, floor: floor, rows: rows, payloadBytes: payloadBytes,
            effects: effects.count, operations: operations?.count ?? 0)
        missing.removeAll(keepingCapacity: true)
        hasWritten = false
    }

    /// Ends a job: keeps or discards its changes.
    ///
    /// - Returns: Whether the job failed and left changes in the database. They can be undone only
    ///   with the whole transaction; a savepoint for each job would cost every job two statements.
    mutating func endJob(succeeded: Bool) -> Bool {
        stagedUsage.endJob(succeeded: succeeded)
        guard !succeeded else { return false }
        head = mark.head
        floor = mark.floor
        rows = mark.rows
        payloadBytes = mark.payloadBytes
        effects.removeSubrange(mark.effects...)
        operations?.removeSubrange(mark.operations...)
        return hasWritten
    }

    /// Runs `body`, and stores an error that makes the transaction unusable, even if the job that
    /// caught it continues.
    private mutating func guarding<T>(
        _ body: (inout WriterConnection) throws -> T
    ) throws -> T {
        if let failure { throw failure }
        do {
            return try body(&connection)
        } catch let error as DatabaseError {
            let error = StoreError(error, files: files)
            // A violated constraint undoes only its own statement. After any other error the state
            // of the transaction is unknown.
            if case .rejected = error {} else { failure = error }
            throw error
        } catch let error as StoreError {
            if case .corrupt = error { failure = error }
            throw error
        }
    }
}

/// The author of a job's changes.
enum StoreAuthor: Sendable {
    /// The job itself; other stores repeat them.
    case ordinary
    /// Another store, or nobody: no store repeats them.
    case other
    /// Another store writes the log now, and the job may only read.
    case refused(StoreError)
}
