import Foundation
import GRDB
import GatewayCore
import Synchronization

/// The embedded store of one gateway: the log, the catalogs, the registrations, the epochs.
///
/// Everything that changes it goes through `write`: one writer, which makes many callers share
/// one transaction. What a caller has an answer for is on disk (write-ahead log, `FULL` sync).
/// Payloads are opaque bytes here. Safe to use from any number of tasks.
package final class SQLiteStore: Sendable {
    /// Length of `secret` in bytes.
    package static let secretBytes = 32
    /// Name of the database file within the data directory.
    static let fileName = "store.sqlite"

    /// What is expected of a data directory.
    package enum Opening: Sendable {
        /// A database is there. A missing or empty one is refused: it was lost.
        case existing
        /// A database may be missing; an empty one is made then.
        case createIfMissing
    }

    /// Random bytes made when the database was created; a key for hashes that never leave it.
    package let secret: Data

    /// Whether opening the store made its tables.
    package let isNew: Bool

    let database: any DatabaseWriter
    package let configuration: StoreConfiguration
    let commits: GroupCommit
    let files: StoreFiles?
    /// The data directory; `nil` in memory.
    var directory: String? { files?.directory }
    /// The mark of this start, once it is made.
    let mark = Mutex<LogMark?>(nil)
    private let lock: DirectoryLock?

    /// Opens the store in a data directory, and creates what is missing: the directory with mode
    /// 0700 (its parent must exist), the files with mode 0600.
    ///
    /// - Parameters:
    ///   - opening: Whether a database is expected to be there.
    ///   - observer: Called on the writer's thread after each transaction.
    /// - Throws: `StoreError.alreadyInUse`, `newerVersion`, `missing`, `corrupt` or `unavailable`.
    package convenience init(
        directory: String, opening: Opening = .createIfMissing,
        configuration: StoreConfiguration = StoreConfiguration(),
        observer: @escaping @Sendable (CommitFigures) -> Void = { _ in }
    ) throws {
        let lock = try DirectoryLock(directory: directory)
        let files = StoreFiles(directory: directory)
        // SQLite throws the write-ahead log of an empty database away.
        if opening == .existing, files.databaseBytes == 0 {
            throw StoreError.missing(reason: "\(files.database) is not there or empty")
        }
        try DirectoryLock.createPrivateFile(path: files.database)
        let database = try StoreError.translating(files) {
            let pool = try DatabasePool(
                path: files.database, configuration: Self.connections(configuration))
            // Opening sets what suits most programs, which is to lose the last commits with the
            // power. This log must not.
            try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
            if opening == .existing, try pool.read(Migrations.isNew) {
                throw StoreError.missing(
                    reason: "\(files.database) holds no tables: its write-ahead log is lost")
            }
            // What fills the disk may be a write-ahead log that is not needed any more.
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
            observer: observer)
    }

    /// Opens the store of a data directory to look at it, beside whoever runs on it. Nothing can be
    /// written.
    ///
    /// - Throws: `StoreError.missing`, `newerVersion`, `olderVersion`, `corrupt` or `unavailable`.
    package convenience init(
        readingOnly directory: String, configuration: StoreConfiguration = StoreConfiguration()
    ) throws {
        let files = StoreFiles(directory: directory)
        guard files.databaseBytes > 0 else {
            throw StoreError.missing(reason: "\(files.database) is not there or empty")
        }
        let database = try StoreError.translating(files) {
            var connections = Self.connections(configuration)
            connections.readonly = true
            let queue = try DatabaseQueue(path: files.database, configuration: connections)
            if try queue.read(Migrations.isNew) {
                throw StoreError.missing(
                    reason: "\(files.database) holds no tables: its write-ahead log is lost")
            }
            return queue
        }
        try self.init(
            database: database, configuration: configuration, files: files, lock: nil,
            migrates: false, observer: { _ in })
    }

    /// Makes a store that lives in memory and is gone with the value, for tests.
    ///
    /// Parameters are those of `init(directory:configuration:observer:)`.
    package convenience init(
        inMemory configuration: StoreConfiguration,
        observer: @escaping @Sendable (CommitFigures) -> Void = { _ in }
    ) throws {
        let database = try StoreError.translating(nil) {
            try DatabaseQueue(configuration: Self.connections(configuration))
        }
        try self.init(
            database: database, configuration: configuration, files: nil, lock: nil,
            observer: observer)
    }

    private init(
        database: any DatabaseWriter, configuration: StoreConfiguration, files: StoreFiles?,
        lock: DirectoryLock?, migrates: Bool = true,
        observer: @escaping @Sendable (CommitFigures) -> Void
    ) throws {
        self.database = database
        self.configuration = configuration
        self.files = files
        self.lock = lock
        let (isNew, position, secret, hashKey) = try StoreError.translating(files) {
            try Migrations.check(database)
            let isNew = try database.read(Migrations.isNew)
            if migrates { try Migrations.migrator.migrate(database) }
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
            fingerprint: EventFingerprint(key: hashKey), head: position.head, floor: position.floor,
            observer: observer)
    }

    /// Highest sequence on disk; 0 when nothing was ever accepted. Stays when rows are pruned.
    package var head: UInt64 { commits.figures.head }

    /// Highest sequence ever pruned; 0 at first. The log holds `floor + 1 ... head`.
    package var floor: UInt64 { commits.figures.floor }

    /// The registrations and the log bytes of every app on disk. Counted from what
    /// ``restoreUsage(_:)`` set; without it from nothing, as is right for a new store.
    package var usage: UsageTable { commits.usage }

    /// Sets ``usage`` to what the rows of the store come to. Called by a start, which reads them
    /// all, before anything is written.
    package func restoreUsage(_ usage: UsageTable) { commits.restoreUsage(usage) }

    /// What the store has done since it was opened, and its size on disk.
    package var figures: StoreFigures {
        var figures = commits.figures
        figures.databaseBytes = files?.databaseBytes ?? 0
        figures.walBytes = files?.walBytes ?? 0
        return figures
    }

    /// Runs `job` inside a transaction that it may share with others, and returns once that is on
    /// disk and the closures of `afterCommit` have been called.
    ///
    /// Cancelling the calling task does not take a queued job back.
    ///
    /// - Parameters:
    ///   - lane: Whose turn the job uses.
    ///   - cost: What the job counts against the limits of the queue, in the unit of
    ///     `StoreConfiguration.pendingCostMax`.
    ///   - freesSpace: Whether the job removes more than it adds, and so may use the space that is
    ///     reserved on a full disk.
    ///   - job: Called on the writer's thread, and again when another job of its transaction failed
    ///     after a change: what it does outside the store belongs into `afterCommit`. Must not block.
    /// - Throws: what `job` throws, and then it has changed nothing; `StoreError.busy` or `closed`
    ///   at once; `unavailable` if the disk refused the transaction, and then nothing of it is
    ///   left and its sequences will be assigned anew.
    package func write<T: Sendable>(
        for lane: WriterLane = .gateway, cost: Int, freesSpace: Bool = false,
        _ job: @escaping @Sendable (inout StoreTransaction) throws -> T
    ) async throws -> Committed<T> {
        let result = Result<T>()
        let head = try await submit(lane, cost: cost, freesSpace: freesSpace) {
            result.value = try job(&$0)
        }
        guard let value = result.value else { throw StoreError.unavailable(reason: "no result") }
        return Committed(value: value, head: head)
    }

    /// What a job returned. A box, so that all that happens between a job and its caller is of
    /// one type, whatever the job returns: the generic way costs more than a short job itself.
    private final class Result<T: Sendable>: @unchecked Sendable {
        // Sound: written by the writer's thread alone, and read when that has resumed the caller.
        var value: T?
    }

    /// Runs `job` as ``write(for:cost:freesSpace:_:)`` does; returns the head of the log after the commit.
    private func submit(
        _ lane: WriterLane, cost: Int, freesSpace: Bool,
        _ job: @escaping @Sendable (inout StoreTransaction) throws -> Void
    ) async throws -> UInt64 {
        try await withCheckedThrowingContinuation {
            (continuation: CheckedContinuation<UInt64, any Error>) in
            commits.submit(
                GroupCommit.Job(
                    lane: lane, cost: max(cost, 0), freesSpace: freesSpace,
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

    /// Takes no further job, finishes those that wait, empties the write-ahead log into the
    /// database file, closes it and frees the data directory.
    ///
    /// Closing a closed store does nothing.
    package func close() async throws {
        try await withCheckedThrowingContinuation {
            (continuation: CheckedContinuation<Void, any Error>) in
            commits.close { [self, database, files, lock] isFirst in
                guard isFirst else { return continuation.resume() }
                noteHead()
                continuation.resume(
                    with: Swift.Result {
                        try StoreError.translating(files) {
                            // Not being able to tidy up loses nothing: the next start recovers.
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

    /// Runs `body` unless the store is closed, and translates the errors of the database.
    func whileOpen<T>(_ body: () throws -> T) throws -> T {
        // A closed connection is not safe to be asked anything.
        guard !commits.isClosed else { throw StoreError.closed }
        return try StoreError.translating(files, body)
    }

    /// How every connection is set up, in a file or in memory.
    private static func connections(_ configuration: StoreConfiguration) -> Configuration {
        var connections = Configuration()
        connections.label = "store"
        connections.foreignKeysEnabled = false
        connections.maximumReaderCount = max(configuration.readersMax, 1)
        connections.busyMode = .timeout(StoreConfiguration.busySeconds)
        connections.prepareDatabase { db in
            try db.execute(sql: "PRAGMA temp_store = MEMORY")
            guard !db.configuration.readonly else { return }
            // Has to come before the first table, and before the write-ahead log.
            try db.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL")
            try db.execute(sql: "PRAGMA cache_size = -\(max(configuration.cacheKiB, 1_024))")
            // The writer makes its own checkpoints; this is the backstop, and the size to which
            // a log that a reader let grow is cut back.
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
