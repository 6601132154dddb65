import Foundation
import GRDB
import GatewayCore

/// What a job may do to the store, inside the transaction it shares with other jobs.
///
/// A job sees what the jobs before it in the same transaction did. If it throws, everything it did
/// is undone and the others are not affected: where it had changed anything, the transaction begins
/// anew and they run once more. If the disk fails, all of them are undone together.
/// A transaction is valid only while its job runs.
package struct StoreTransaction: ~Copyable {
    /// The connection of the writer, inside an open transaction.
    var connection: WriterConnection
    /// Named in errors of the disk; `nil` in memory.
    private let files: StoreFiles?
    /// How events are indexed.
    let fingerprint: EventFingerprint
    /// Fingerprints of the events that `event(app:source:id:)` did not find and that have not been
    /// appended since, so that `append` does not look for them a second time.
    var missing: Set<Int64> = []
    /// Highest sequence, rows of this transaction included.
    private(set) var head: UInt64
    /// Highest sequence ever pruned, this transaction included.
    var floor: UInt64
    /// Rows added.
    private(set) var rows = 0
    /// Bytes of the payloads of the rows added.
    private(set) var payloadBytes = 0
    /// The usage of every app, this transaction included.
    var stagedUsage: StagedUsage
    /// What was asked for with `afterCommit`, in order.
    private(set) var effects: [@Sendable () -> Void] = []
    /// Why this transaction can no longer be committed, if so.
    private(set) var failure: StoreError?

    /// Where the current job began.
    private var mark = Mark()
    /// Whether the current job has changed anything.
    private var hasWritten = false

    private struct Mark {
        var head: UInt64 = 0
        var floor: UInt64 = 0
        var rows = 0
        var payloadBytes = 0
        var effects = 0
    }

    init(
        connection: WriterConnection, files: StoreFiles?, fingerprint: EventFingerprint,
        head: UInt64, floor: UInt64, usage: UsageTable
    ) {
        self.connection = connection
        self.files = files
        self.fingerprint = fingerprint
        self.head = head
        self.floor = floor
        stagedUsage = StagedUsage(committed: usage)
    }

    /// Returns the registrations and the log bytes of an app, this transaction included.
    package func usage(of app: String) -> AppUsage { stagedUsage.usage(of: app) }

    /// The sequence that the next call of `append` will assign.
    package var nextSequence: UInt64 { head + 1 }

    /// Calls `effect` on the writer's thread once the transaction is on disk, before any caller
    /// learns of it, and after the closures of the jobs before. Never called if the job or the
    /// transaction fails. It must return soon, for the next transaction waits for it, and must not
    /// wait for a write.
    package mutating func afterCommit(_ effect: @escaping @Sendable () -> Void) {
        effects.append(effect)
    }

    /// Refuses texts that hold a NUL: the embedded database hands them back cut short there, so
    /// that they would not be found again.
    static func requireNoNUL(in texts: String...) throws {
        for var text in texts where text.withUTF8({ $0.contains(0) }) {
            throw StoreError.rejected(reason: "a text holds a NUL")
        }
    }

    /// Reads from the database.
    mutating func reading<T>(_ body: (Database) throws -> T) throws -> T {
        try guarding { try body($0.database) }
    }

    /// Changes the database; what `body` does is undone if the job fails later.
    mutating func writing<T>(_ body: (Database) throws -> T) throws -> T {
        hasWritten = true
        return try guarding { try body($0.database) }
    }

    /// Runs one of the frequent statements; see ``WriterConnection/run(_:_:row:)``.
    mutating func run(
        _ statement: WriterStatement, _ values: [StatementValue],
        row: (ResultRow) throws -> Void = { _ in }
    ) throws {
        if statement.isWrite { hasWritten = true }
        try guarding { try $0.run(statement, values, row: row) }
    }

    /// Notes a row that has just been inserted with `nextSequence`.
    mutating func noteAppended(payloadBytes count: Int, app: String) {
        head += 1
        rows += 1
        payloadBytes += count
        stagedUsage.add(AppUsage(logBytes: count), to: app)
    }

    /// Writes bytes that nobody reads, to find out whether the disk takes them.
    mutating func writeProbe(bytes: Int) throws {
        try writing { db in
            try db.cachedStatement(
                sql: "INSERT OR REPLACE INTO meta (key, value) VALUES ('probe', randomblob(?))"
            ).execute(arguments: [bytes])
        }
        payloadBytes += bytes
    }

    /// Called before each job.
    mutating func beginJob() {
        mark = Mark(
            head: head, floor: floor, rows: rows, payloadBytes: payloadBytes,
            effects: effects.count)
        missing.removeAll(keepingCapacity: true)
        hasWritten = false
    }

    /// Called after each job: keeps or forgets what it did.
    ///
    /// - Returns: Whether the job failed and left changes in the database. They can only be undone
    ///   with the whole transaction; a savepoint for each job would cost every job two statements.
    mutating func endJob(succeeded: Bool) -> Bool {
        stagedUsage.endJob(succeeded: succeeded)
        guard !succeeded else { return false }
        head = mark.head
        floor = mark.floor
        rows = mark.rows
        payloadBytes = mark.payloadBytes
        effects.removeSubrange(mark.effects...)
        return hasWritten
    }

    /// Runs `body`, and remembers an error that makes the transaction unusable even if the job
    /// that met it goes on as if nothing had happened.
    private mutating func guarding<T>(
        _ body: (inout WriterConnection) throws -> T
    ) throws -> T {
        if let failure { throw failure }
        do {
            return try body(&connection)
        } catch let error as DatabaseError {
            let error = StoreError(error, files: files)
            // A violated constraint undoes its own statement only. After any other error nobody
            // can say what is left of the transaction.
            if case .rejected = error {} else { failure = error }
            throw error
        } catch let error as StoreError {
            if case .corrupt = error { failure = error }
            throw error
        }
    }
}
