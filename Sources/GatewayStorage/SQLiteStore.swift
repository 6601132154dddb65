import Foundation
import GRDB
import GatewayCore
import Synchronization

/// The embedded store of one gateway: the log, the catalogs, the registrations, the epochs.
///
/// Every modification goes through `write`: a single writer, which lets many callers share a
/// transaction. When a caller gets its result, the data is on disk (write-ahead log, `FULL` sync).
/// Payloads are opaque bytes here. Safe to use concurrently from any task.
package final class SQLiteStore: Sendable {
    package static let secretBytes = 32
    /// The name of the database file in the data directory.
    static let fileName = "store.sqlite"

    /// The expected content of a data directory.
    package enum Opening: Sendable {
        /// A database exists. A missing or empty one is rejected, because it was lost.
        case existing
        /// A database may be missing; an empty one is then created.
        case createIfMissing
    }

    /// Random bytes generated with the database; a key for hashes that never leave the gateway.
    package let secret: Data

    /// Whether opening the store created its tables.
    package let isNew: Bool

    let database: any DatabaseWriter
    package let configuration: StoreConfiguration
    let commits: GroupCommit
    let files: StoreFiles?
    /// The data directory; `nil` in memory.
    var directory: String? { files?.directory }
    /// The mark of this start; `nil` until it is created.
    let mark = Mutex<LogMark?>(nil)
    private let lock: DirectoryLock?

    /// Removes the store in a directory. No process may have it open.
    package static func remove(from directory: String) throws {
        try StoreFiles(directory: directory).remove()
    }

    /// Returns whether the last process that opened a directory's store ended without closing it,
    /// for example because it was killed. Meaningful only before the store is opened.
    package static func isLeftOpen(in directory: String) -> Bool {
        StoreFiles(directory: directory).isLeftOpen
    }

    /// Opens the store in a data directory, creating what is missing: the directory with mode 0700
    /// (its parent must exist), the files with mode 0600.
    ///
    /// - Parameters:
    ///   - opening: Whether a database is expected to exist.
    ///   - replication: Makes writes durable for the other stores of a cluster; `nil` outside one.
    ///   - observer: Called on the writer's thread after each transaction.
    ///   - onRejection: Called on the writer's thread when a transaction fails as a whole.
    /// - Throws: `StoreError.alreadyInUse`, `newerVersion`, `missing`, `corrupt` or `unavailable`.
    package convenience init(
        directory: String, opening: Opening = .createIfMissing,
        configuration: StoreConfiguration = StoreConfiguration(),
        replication: (any StoreReplication)? = nil,
        observer: @escaping @Sendable (CommitStats) -> Void = { _ in },
        onRejection: @escaping @Sendable (StoreError) -> Void = { _ in }
    ) throws {
        let lock = try DirectoryLock(directory: directory)
        let files = StoreFiles(directory: directory)
        // SQLite discards the write-ahead log of an empty database.
        if opening == .existing, files.databaseBytes == 0 {
            throw StoreError.missing(reason: "\(files.database) is missing or empty")
        }
        try DirectoryLock.createPrivateFile(path: files.database)
        let database = try StoreError.translating(files) {
            let pool = try DatabasePool(
                path: files.database, configuration: Self.connections(configuration))
            // Opening sets a mode that suits most programs and may lose the last commits in a power
            // failure. A log must not lose them, unless others have them.
            if replication == nil {
                try pool.writeWithoutTransaction {
                    try $0.execute(sql: "PRAGMA synchronous = FULL")
                }
            }
            if opening == .existing, try pool.read(Migrations.isNew) {
                throw StoreError.missing(
                    reason: "\(files.database) contains no tables: its write-ahead log is lost")
            }
            // The disk may be full because of a write-ahead log that is no longer needed.
            let free = configuration.freeBytes(directory)
            if let free, free < DiskSpacePolicy.scarceBytes {
                _ = try? pool.writeWithoutTransaction {
                    try GroupCommit.checkpoint($0, givesBackSpace: true)
                }
            }
            return pool
        }
        try self.init(
            database: database, configuration: configuration, files: files, lock: lock,
            replication: replication, observer: observer, onRejection: onRejection)
    }

    /// Opens the store of a data directory for reading, concurrently with a running gateway. It
    /// cannot be modified.
    ///
    /// - Throws: `StoreError.missing`, `newerVersion`, `olderVersion`, `corrupt` or `unavailable`.
    package convenience init(readingOnly directory: String) throws {
        let configuration = StoreConfiguration()
        let files = StoreFiles(directory: directory)
        guard files.databaseBytes > 0 else {
            throw StoreError.missing(reason: "\(files.database) is missing or empty")
        }
        let database = try StoreError.translating(files) {
            var connections = Self.connections(configuration)
            connections.readonly = true
            let queue = try DatabaseQueue(path: files.database, configuration: connections)
            if try queue.read(Migrations.isNew) {
                throw StoreError.missing(
                    reason: "\(files.database) contains no tables: its write-ahead log is lost")
            }
            return queue
        }
        try self.init(
            database: database, configuration: configuration, files: files, lock: nil,
            migrates: false, observer: { _ in })
    }

    /// Creates a store in memory, for tests; its content is lost with the value.
    package convenience init(
        inMemory configuration: StoreConfiguration, replication: (any StoreReplication)? = nil,
        observer: @escaping @Sendable (CommitStats) -> Void = { _ in }
    ) throws {
        let database = try StoreError.translating(nil) {
            try DatabaseQueue(configuration: Self.connections(configuration))
        }
        try self.init(
            database: database, configuration: configuration, files: nil, lock: nil,
            replication: replication, observer: observer)
    }

    private init(
        database: any DatabaseWriter, configuration: StoreConfiguration, files: StoreFiles?,
        lock: DirectoryLock?, migrates: Bool = true, replication: (any StoreReplication)? = nil,
        observer: @escaping @Sendable (CommitStats) -> Void,
        onRejection: @escaping @Sendable (StoreError) -> Void = { _ in }
    ) throws {
        self.database = database
        self.configuration = configuration
        self.files = files
        self.lock = lock
        let (isNew, position, secret, hashKey) = try StoreError.translating(files) {
            try Migrations.check(database)
            let isNew = try database.read(Migrations.isNew)
            if migrates { try Migrations.migrator.migrate(database) }
            if isNew, let secrets = replication?.secrets {
                try database.write { db in
                    try db.execute(
                        sql: "UPDATE state SET secret = ?, event_hash_key = ?",
                        arguments: [secrets.store, secrets.events])
                }
            }
            return try database.read { db in
                if configuration.verifiesOnOpen { try Self.verify(db) }
                let position = try Self.position(db)
                let keys = try Row.fetchOne(db, sql: "SELECT secret, event_hash_key FROM state")
                let secret: Data? = keys?[0]
                let hashKey: Data? = keys?[1]
                return (isNew, position, secret ?? Data(), hashKey ?? Data())
            }
        }
        guard secret.count == Self.secretBytes else {
            throw StoreError.corrupt(reason: "the secret has a wrong length")
        }
        self.secret = secret
        self.isNew = isNew
        commits = try GroupCommit(
            database: database, files: files, lock: lock, configuration: configuration,
            fingerprint: EventFingerprint(key: hashKey), replication: replication,
            head: position.head, floor: position.floor, observer: observer, onRejection: onRejection
        )
    }

    /// The highest sequence on disk, even if its row was pruned; 0 when nothing was accepted.
    package var head: UInt64 { commits.figures.head }

    /// The highest sequence ever pruned; 0 at first. The log contains `floor + 1 ... head`.
    package var floor: UInt64 { commits.figures.floor }

    /// The registrations and log bytes of every app on disk, counted from the values that
    /// ``restoreUsage(_:)`` set, or otherwise from zero, which is right for a new store.
    package var usage: UsageTable { commits.usage }

    /// Sets ``usage`` to the values counted from the store's rows. Called by a start, which reads
    /// all rows, before anything is written.
    package func restoreUsage(_ usage: UsageTable) { commits.restoreUsage(usage) }

    /// The statistics since the store was opened, and its size on disk.
    package var figures: StoreStats {
        var figures = commits.figures
        figures.databaseBytes = files?.databaseBytes ?? 0
        figures.walBytes = files?.walBytes ?? 0
        return figures
    }

    /// Runs `job` in a transaction that may be shared with others, and returns once that is on disk
    /// and the closures of `afterCommit` have been called.
    ///
    /// Cancelling the calling task does not cancel a queued job.
    ///
    /// - Parameters:
    ///   - lane: The queue that the job is served from.
    ///   - cost: The cost of the job for the limits of the queue, in the unit of
    ///     `StoreConfiguration.pendingCostMax`.
    ///   - freesSpace: Whether the job removes more than it adds, and may therefore use the space
    ///     reserved on a full disk.
    ///   - job: Called on the writer's thread, and again if another job of its transaction failed
    ///     after a change; therefore effects outside the store belong into `afterCommit`. It must
    ///     not block.
    /// - Throws: The error of `job`, which has then changed nothing; `StoreError.busy` or `closed`
    ///   at once; `unavailable` if the disk refused the transaction, which is then undone, and its
    ///   sequences will be assigned again.
    package func write<T: Sendable>(
        for lane: WriterLane = .gateway, cost: Int, freesSpace: Bool = false,
        _ job: @escaping @Sendable (inout StoreTransaction) throws -> T
    ) async throws -> Committed<T> {
        try await write(for: lane, cost: cost, freesSpace: freesSpace, isLocal: false, job)
    }

    /// Runs `job` as ``write(for:cost:freesSpace:_:)`` does, in a store of a cluster: what it
    /// writes came from another store, or concerns this one only, so that no other repeats it.
    package func writeLocally<T: Sendable>(
        cost: Int, _ job: @escaping @Sendable (inout StoreTransaction) throws -> T
    ) async throws -> Committed<T> {
        try await write(for: .gateway, cost: cost, freesSpace: false, isLocal: true, job)
    }

    private func write<T: Sendable>(
        for lane: WriterLane, cost: Int, freesSpace: Bool, isLocal: Bool,
        _ job: @escaping @Sendable (inout StoreTransaction) throws -> T
    ) async throws -> Committed<T> {
        let result = Result<T>()
        let head = try await submit(lane, cost: cost, freesSpace: freesSpace, isLocal: isLocal) {
            result.value = try job(&$0)
        }
        guard let value = result.value else { throw StoreError.unavailable(reason: "no result") }
        return Committed(value: value, head: head)
    }

    /// Holds the result of a job. A box, so that everything between a job and its caller has a
    /// single type, whatever the job returns: generic code would cost more than a short job itself.
    private final class Result<T: Sendable>: @unchecked Sendable {
        // Sound: written only by the writer's thread, and read after that has resumed the caller.
        var value: T?
    }

    /// Runs `job` as ``write(for:cost:freesSpace:_:)`` does; returns the log's head after the
    /// commit.
    private func submit(
        _ lane: WriterLane, cost: Int, freesSpace: Bool, isLocal: Bool,
        _ job: @escaping @Sendable (inout StoreTransaction) throws -> Void
    ) async throws -> UInt64 {
        try await withCheckedThrowingContinuation {
            (continuation: CheckedContinuation<UInt64, any Error>) in
            commits.submit(
                GroupCommit.Job(
                    lane: lane, cost: max(cost, 0), freesSpace: freesSpace, isLocal: isLocal,
                    run: { transaction in
                        do {
                            try job(&transaction)
                            return GroupCommit.Answer(succeeded: true) {
                                continuation.resume(returning: $0)
                            }
                        } catch {
                            return GroupCommit.Answer(succeeded: false) { _ in
                                continuation.resume(throwing: error)
                            }
                        }
                    },
                    fail: { continuation.resume(throwing: $0) }))
        }
    }

    /// Rejects further jobs, completes those waiting, copies the write-ahead log into the database
    /// file, closes it and releases the data directory.
    ///
    /// Closing a closed store has no effect.
    package func close() async throws {
        try await withCheckedThrowingContinuation {
            (continuation: CheckedContinuation<Void, any Error>) in
            commits.close { [self, database, files, lock] isFirst in
                guard isFirst else { return continuation.resume() }
                noteHead()
                continuation.resume(
                    with: Swift.Result {
                        try StoreError.translating(files) {
                            // A failed checkpoint loses nothing: the next start recovers.
                            try? database.writeWithoutTransaction {
                                _ = try $0.checkpoint(.truncate)
                            }
                            try database.close()
                            lock?.release()
                        }
                    })
            }
        }
    }

    /// Reads on the caller's thread, unless the store is closed; translates the database's errors.
    func readNow<T>(_ body: (Database) throws -> T) throws -> T {
        // A closed connection must not be used.
        guard !commits.isClosed else { throw StoreError.closed }
        return try StoreError.translating(files) { try database.read(body) }
    }

    /// Writes as ``readNow(_:)`` reads.
    func writeNow<T>(_ body: (Database) throws -> T) throws -> T {
        guard !commits.isClosed else { throw StoreError.closed }
        return try StoreError.translating(files) { try database.write(body) }
    }

    /// Returns the settings of every connection, to a file or in memory.
    private static func connections(_ configuration: StoreConfiguration) -> Configuration {
        var connections = Configuration()
        connections.label = "store"
        connections.foreignKeysEnabled = false
        connections.maximumReaderCount = max(configuration.readersMax, 1)
        connections.busyMode = .timeout(StoreConfiguration.busySeconds)
        connections.prepareDatabase { db in
            try db.execute(sql: "PRAGMA temp_store = MEMORY")
            guard !db.configuration.readonly else { return }
            // Must precede the first table, and the write-ahead log.
            try db.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL")
            try db.execute(sql: "PRAGMA cache_size = -\(max(configuration.cacheKiB, 1_024))")
            // The writer makes checkpoints itself. This is the fallback, and the size to which a
            // log grown because of a reader is cut back.
            try db.execute(sql: "PRAGMA wal_autocheckpoint = 32768")
            try db.execute(sql: "PRAGMA journal_size_limit = 134217728")
            try db.execute(sql: "PRAGMA fullfsync = 1")
        }
        return connections
    }

    private static func verify(_ db: Database) throws {
        let result = try String.fetchOne(db, sql: "PRAGMA quick_check(1)")
        guard result == "ok" else {
            throw StoreError.corrupt(reason: "the structure check failed")
        }
    }
}
