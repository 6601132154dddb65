import Foundation
import GRDB

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

    /// Random bytes made when the database was created; a key for hashes that never leave it.
    package let secret: Data

    let database: any DatabaseWriter
    let configuration: StoreConfiguration
    let commits: GroupCommit
    private let path: String?
    private let lock: DirectoryLock?

    /// Opens the store in a data directory, and creates what is missing: the directory with mode
    /// 0700 (its parent must exist), the files with mode 0600.
    ///
    /// - Parameters:
    ///   - observer: Called on the writer's thread after each transaction.
    /// - Throws: `StoreError.alreadyInUse`, `newerVersion`, `corrupt` or `unavailable`.
    package convenience init(
        directory: String, configuration: StoreConfiguration = StoreConfiguration(),
        observer: @escaping @Sendable (CommitFigures) -> Void = { _ in }
    ) throws {
        let lock = try DirectoryLock(directory: directory)
        let path = directory + "/" + Self.fileName
        try DirectoryLock.createPrivateFile(path: path)
        let database = try StoreError.translating {
            let pool = try DatabasePool(
                path: path, configuration: Self.connections(configuration))
            // Opening sets what suits most programs, which is to lose the last commits with the
            // power. This log must not.
            try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
            return pool
        }
        try self.init(
            database: database, configuration: configuration, path: path, lock: lock,
            observer: observer)
    }

    /// Makes a store that lives in memory and is gone with the value, for tests.
    ///
    /// Parameters are those of `init(directory:configuration:observer:)`.
    package convenience init(
        inMemory configuration: StoreConfiguration,
        observer: @escaping @Sendable (CommitFigures) -> Void = { _ in }
    ) throws {
        let database = try StoreError.translating {
            try DatabaseQueue(configuration: Self.connections(configuration))
        }
        try self.init(
            database: database, configuration: configuration, path: nil, lock: nil,
            observer: observer)
    }

    private init(
        database: any DatabaseWriter, configuration: StoreConfiguration, path: String?,
        lock: DirectoryLock?, observer: @escaping @Sendable (CommitFigures) -> Void
    ) throws {
        self.database = database
        self.configuration = configuration
        self.path = path
        self.lock = lock
        let (position, secret, hashKey) = try StoreError.translating {
            try Migrations.run(on: database)
            return try database.read { db in
                if configuration.verifiesOnOpen { try Self.verify(db) }
                let position = try Self.position(db)
                let keys = try Row.fetchOne(db, sql: "SELECT secret, event_hash_key FROM state")
                let secret: Data? = keys?[0]
                let hashKey: Data? = keys?[1]
                return (position, secret ?? Data(), hashKey ?? Data())
            }
        }
        guard secret.count == Self.secretBytes else {
            throw StoreError.corrupt(reason: "the secret has a wrong length")
        }
        self.secret = secret
        commits = try GroupCommit(
            database: database, lock: lock, configuration: configuration,
            fingerprint: EventFingerprint(key: hashKey), head: position.head, floor: position.floor,
            observer: observer)
    }

    /// Highest sequence on disk; 0 when nothing was ever accepted. Stays when rows are pruned.
    package var head: UInt64 { commits.figures.head }

    /// Highest sequence ever pruned; 0 at first. The log holds `floor + 1 ... head`.
    package var floor: UInt64 { commits.figures.floor }

    /// What the store has done since it was opened, and its size on disk.
    package var figures: StoreFigures {
        var figures = commits.figures
        figures.databaseBytes = path.map(Self.fileSize) ?? 0
        figures.walBytes = path.map { Self.fileSize($0 + "-wal") } ?? 0
        return figures
    }

    /// Runs `job` inside a transaction that it may share with others, and returns once that is on
    /// disk and the closures of `afterCommit` have been called.
    ///
    /// Cancelling the calling task does not take a queued job back.
    ///
    /// - Parameters:
    ///   - cost: What the job counts against the limits of the queue, in the unit of
    ///     `StoreConfiguration.pendingCostMax`.
    ///   - job: Called on the writer's thread, and again when another job of its transaction failed
    ///     after a change: what it does outside the store belongs into `afterCommit`. Must not block.
    /// - Throws: what `job` throws, and then it has changed nothing; `StoreError.busy` or `closed`
    ///   at once; `unavailable` if the disk refused the transaction, and then nothing of it is
    ///   left and its sequences will be assigned anew.
    package func write<T: Sendable>(
        cost: Int, _ job: @escaping @Sendable (inout StoreTransaction) throws -> T
    ) async throws -> Committed<T> {
        let result = Result<T>()
        let head = try await submit(cost: cost) { result.value = try job(&$0) }
        guard let value = result.value else { throw StoreError.unavailable(reason: "no result") }
        return Committed(value: value, head: head)
    }

    /// What a job returned. A box, so that all that happens between a job and its caller is of
    /// one type, whatever the job returns: the generic way costs more than a short job itself.
    private final class Result<T: Sendable>: @unchecked Sendable {
        // Sound: written by the writer's thread alone, and read when that has resumed the caller.
        var value: T?
    }

    /// Runs `job` as ``write(cost:_:)`` does; returns the head of the log after the commit.
    private func submit(
        cost: Int, _ job: @escaping @Sendable (inout StoreTransaction) throws -> Void
    ) async throws -> UInt64 {
        try await withCheckedThrowingContinuation {
            (continuation: CheckedContinuation<UInt64, any Error>) in
            commits.submit(
                GroupCommit.Job(
                    cost: max(cost, 0),
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
            commits.close { [database, lock] isFirst in
                guard isFirst else { return continuation.resume() }
                continuation.resume(
                    with: Swift.Result {
                        try StoreError.translating {
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
        return try StoreError.translating(body)
    }

    /// How every connection is set up, in a file or in memory.
    private static func connections(_ configuration: StoreConfiguration) -> Configuration {
        var connections = Configuration()
        connections.label = "store"
        connections.foreignKeysEnabled = false
        connections.maximumReaderCount = max(configuration.readersMax, 1)
        connections.busyMode = .timeout(5)
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

    private static func fileSize(_ path: String) -> Int64 {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        return (attributes?[.size] as? NSNumber)?.int64Value ?? 0
    }
}
