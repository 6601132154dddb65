import CLinux
import Dispatch
import GRDB
import GRDBSQLite
import GatewayCore
import Synchronization

/// The only writer of the store: runs all waiting jobs in one transaction, and completes them once
/// it is on disk. While the disk is busy, the jobs of the next transaction accumulate.
///
/// Jobs of one app run in the order of their submission. Between apps the writer goes round robin
/// by cost, and each app may use only its share of the queue.
final class GroupCommit: Sendable {
    /// A waiting job, with the means to complete it.
    struct Job: Sendable {
        /// The queue that the job is served from.
        let lane: WriterLane
        /// The cost that counts towards the limits.
        let cost: Int
        /// Whether the job frees space and may therefore use the reserve of a full disk.
        let freesSpace: Bool
        /// Whether other stores do not repeat what it writes.
        let isLocal: Bool
        /// Does the work, once for each attempt at its transaction; the answer of the last attempt
        /// is given when the outcome of the transaction is known.
        let run: @Sendable (inout StoreTransaction) -> Answer
        /// Completes the job if it could not run or its transaction failed.
        let fail: @Sendable (StoreError) -> Void
    }

    /// The result of a job itself, before the commit.
    struct Answer: Sendable {
        let succeeded: Bool
        /// Completes the job; called with the head of the log after the commit.
        let give: @Sendable (UInt64) -> Void
    }

    private struct State {
        var waiting: FairQueue<WriterLane, Job>
        var isDraining = false
        var isClosed = false
        var figures = StoreStats()
        /// The registrations and log bytes of every app on disk.
        var usage = UsageTable()
        /// The bytes written to the write-ahead log since the last attempt at a checkpoint.
        var writtenBytes: Int64 = 0
        /// The bytes of the write-ahead log that are not in the database file, as an upper
        /// estimate.
        var uncopiedBytes: Int64 = 0
        var health = WriteHealth()
        var isProbeScheduled = false

        init(_ limits: FairQueue<WriterLane, Job>.Limits) {
            waiting = FairQueue(limits: limits)
        }

        mutating func recordWrite(bytes: Int) {
            writtenBytes += Int64(bytes)
            uncopiedBytes += Int64(bytes)
            health.recordWrite(bytes: bytes)
        }
    }

    /// The result of a committed transaction.
    private struct Outcome {
        let answers: [Answer]
        let rows: Int
        /// The bytes written to the write-ahead log, as an upper estimate.
        let bytes: Int
        let effects: [@Sendable () -> Void]
        let conclusion: (@Sendable () -> Void)?
        /// The changes to the usage of apps.
        let usage: UsageTable
        let head: UInt64
        let floor: UInt64
        let longestJobNanoseconds: Int64
    }

    /// The committed state at the beginning of a transaction.
    private struct Before {
        let head: UInt64
        let floor: UInt64
        let usage: UsageTable
    }

    private static let pageBytes = 4_096

    private let database: any DatabaseWriter
    private let configuration: StoreConfiguration
    private let files: StoreFiles?
    private let policy: DiskSpacePolicy
    private let fingerprint: EventFingerprint
    private let replication: (any StoreReplication)?
    private let observer: @Sendable (CommitStats) -> Void
    private let onRejection: @Sendable (StoreError) -> Void
    /// Kept here because a queued job outlives the store itself.
    private let lock: DirectoryLock?
    private let queue = DispatchQueue(label: "store.writer")
    private let state: Mutex<State>

    init(
        database: any DatabaseWriter, files: StoreFiles?, lock: DirectoryLock?,
        configuration: StoreConfiguration, fingerprint: EventFingerprint,
        replication: (any StoreReplication)?, head: UInt64, floor: UInt64,
        observer: @escaping @Sendable (CommitStats) -> Void,
        onRejection: @escaping @Sendable (StoreError) -> Void
    ) {
        self.database = database
        self.files = files
        self.lock = lock
        let (bytes, overflows) = Int64(configuration.checkpointPages)
            .multipliedReportingOverflow(by: Int64(Self.pageBytes))
        policy = DiskSpacePolicy(checkpointBytesMax: overflows ? .max : bytes)
        self.configuration = configuration
        self.fingerprint = fingerprint
        self.replication = replication
        self.observer = observer
        self.onRejection = onRejection
        var state = State(
            .init(
                count: configuration.pendingJobsMax, cost: configuration.pendingCostMax,
                quantum: configuration.turnCost))
        state.figures.head = head
        state.figures.floor = floor
        state.uncopiedBytes = files?.walBytes ?? 0
        self.state = Mutex(state)
    }

    /// The statistics so far, without the sizes of files.
    var figures: StoreStats {
        state.withLock {
            var figures = $0.figures
            figures.waitingJobs = $0.waiting.count
            figures.waitingCost = $0.waiting.cost
            figures.isRefusingWrites = $0.health.isRefusing(at: Self.milliseconds)
            return figures
        }
    }

    /// The registrations and log bytes of every app on disk; see ``restoreUsage(_:)``.
    var usage: UsageTable { state.withLock { $0.usage } }

    /// Sets the usage of every app, as counted at the start.
    func restoreUsage(_ usage: UsageTable) { state.withLock { $0.usage = usage } }

    /// Queues a job, or fails it at once if the queue is full.
    func submit(_ job: Job) {
        enum Verdict {
            case queued, queuedFirst
            case refused(StoreError)
        }
        let verdict = state.withLock { state -> Verdict in
            if state.isClosed { return .refused(.closed) }
            let refusal = state.waiting.append(
                job, for: job.lane, cost: job.cost, isShareBound: job.lane != .gateway)
            guard refusal == nil else {
                state.figures.refusedJobs += 1
                return .refused(.busy)
            }
            defer { state.isDraining = true }
            return state.isDraining ? .queued : .queuedFirst
        }
        switch verdict {
        case .queued: break
        case .queuedFirst: queue.async { self.drain() }
        case .refused(let error): job.fail(error)
        }
    }

    /// Whether further jobs are rejected.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Rejects further jobs, completes those waiting, then calls `body` on the writer's thread; its
    /// argument is whether this is the first call of `close`.
    func close(_ body: @escaping @Sendable (_ isFirst: Bool) -> Void) {
        let isFirst = state.withLock { state in
            defer { state.isClosed = true }
            return !state.isClosed
        }
        // The queue is serial: a scheduled drain ends before this begins, and it ends only when no
        // job waits.
        queue.async { body(isFirst) }
    }

    private func drain() {
        while true {
            let jobs = takeJobs()
            if jobs.isEmpty { return }
            run(jobs)
            checkpointIfDue()
        }
    }

    /// Returns the jobs of the next transaction; empty if none waits.
    private func takeJobs() -> [Job] {
        state.withLock { state in
            var jobs: [Job] = []
            var cost = 0
            while jobs.count < configuration.transactionJobsMax,
                jobs.isEmpty || cost < configuration.transactionCostMax,
                let next = state.waiting.popFirst()
            {
                jobs.append(next.element)
                cost = cost.addingReportingOverflow(next.cost).overflow ? .max : cost + next.cost
            }
            if jobs.isEmpty { state.isDraining = false }
            return jobs
        }
    }

    private func run(_ jobs: [Job]) {
        let begin = ContinuousClock.now
        var size = 0
        let outcome: Outcome
        do {
            outcome = try transact(jobs, size: &size)
        } catch {
            // First: the callers of failed jobs may read the state of the disk at once.
            let isOfDisk = !error.isOfCluster
            if isOfDisk { noteRefusal(bytes: size) }
            for job in jobs { job.fail(error) }
            if isOfDisk { onRejection(error) }
            return
        }
        let seconds = (ContinuousClock.now - begin) / .seconds(1)
        note(outcome, jobs: jobs.count, seconds: seconds)
        var longest = LongestTurn(nanoseconds: outcome.longestJobNanoseconds)
        for effect in outcome.effects { longest.measure(effect) }
        if let conclusion = outcome.conclusion { longest.measure(conclusion) }
        for answer in outcome.answers { answer.give(outcome.head) }
        observer(
            CommitStats(
                jobs: jobs.count, rows: outcome.rows, seconds: seconds,
                longestJobNanoseconds: longest.nanoseconds))
    }

    private func transact(_ jobs: [Job], size: inout Int) throws(StoreError) -> Outcome {
        let before = state.withLock {
            Before(head: $0.figures.head, floor: $0.figures.floor, usage: $0.usage)
        }
        do {
            return try database.writeWithoutTransaction { db in
                try transact(db, jobs: jobs, before, size: &size)
            }
        } catch {
            throw (error as? StoreError) ?? .unavailable(reason: "unexpected error")
        }
    }

    /// Runs the jobs and commits. On failure nothing is changed, and it throws a `StoreError`.
    ///
    /// - Parameter size: Set to the bytes of the last attempt, as an upper estimate.
    private func transact(
        _ db: Database, jobs: [Job], _ before: Before, size: inout Int
    ) throws -> Outcome {
        do {
            // The answers of jobs that failed after a change; they are not run again.
            var failed: [Int: Answer] = [:]
            var hasReclaimed = false
            while true {
                do {
                    let attempt = try attempt(
                        db, jobs, from: before, failed: &failed, size: &size)
                    if let attempt { return attempt }
                    try db.rollback()
                } catch let lack as LackOfSpace {
                    try db.rollback()
                    guard !hasReclaimed else { throw lack.error }
                    hasReclaimed = true
                    reclaimSpace(db)
                }
            }
        } catch {
            // Works even if SQLite has already rolled back.
            try? db.rollback()
            if let error = error as? DatabaseError { throw StoreError(error, files: files) }
            throw error
        }
    }

    /// Runs the jobs except those in `failed`, and commits.
    ///
    /// - Returns: `nil` when jobs failed after a change, which must be undone; they are then in
    ///   `failed`.
    private func attempt(
        _ db: Database, _ jobs: [Job], from before: Before, failed: inout [Int: Answer],
        size: inout Int
    ) throws -> Outcome? {
        let changesBefore = db.totalChangesCount
        var transaction = StoreTransaction(
            connection: WriterConnection(db), files: files, fingerprint: fingerprint,
            head: before.head, floor: before.floor, usage: before.usage,
            isShared: replication != nil)
        let author = replication?.refusal.map { StoreAuthor.refused($0) } ?? .ordinary
        try transaction.connection.run(.begin)
        var answers: [Answer] = []
        answers.reserveCapacity(jobs.count)
        var longest = LongestTurn()
        for (index, job) in jobs.enumerated() {
            if let answer = failed[index] {
                answers.append(answer)
                continue
            }
            transaction.beginJob(by: job.isLocal ? .other : author)
            let answer = longest.measure { job.run(&transaction) }
            size = Self.bytesWritten(
                changes: db.totalChangesCount - changesBefore,
                payloadBytes: transaction.payloadBytes)
            let mustUndo = transaction.endJob(succeeded: answer.succeeded)
            if let failure = transaction.failure { throw failure }
            if mustUndo {
                failed[index] = answer
                return nil
            }
            answers.append(answer)
        }
        if let error = lackOfSpace(bytes: size) {
            let ordinary = jobs.indices.filter { !jobs[$0].freesSpace && failed[$0] == nil }
            guard ordinary.count < jobs.count - failed.count else {
                throw LackOfSpace(error: error)
            }
            if !ordinary.isEmpty {
                // Jobs that free space run without the others.
                noteRefusal(bytes: size)
                for index in ordinary {
                    failed[index] = Answer(succeeded: false) { _ in jobs[index].fail(error) }
                }
                return nil
            }
        }
        try replicate(&transaction)
        return Outcome(
            answers: answers, rows: transaction.rows, bytes: size, effects: transaction.effects,
            conclusion: transaction.conclusion, usage: transaction.stagedUsage.changes,
            head: transaction.head,
            floor: transaction.floor, longestJobNanoseconds: longest.nanoseconds)
    }

    /// Commits, after the other stores of a cluster cannot miss it.
    private func replicate(_ transaction: inout StoreTransaction) throws {
        guard let replication, let operations = transaction.operations, !operations.isEmpty else {
            return try transaction.connection.run(.commit)
        }
        let position = try replication.append(operations, head: transaction.head)
        do {
            transaction.beginJob(by: .other)
            try transaction.setMeta(SQLiteStore.replicationPosition, position)
            try transaction.connection.run(.commit)
        } catch {
            replication.diverged()
            throw StoreError.unconfirmed(reason: "\(error)")
        }
    }

    /// Returns an upper estimate of the bytes that a transaction writes: each change writes a page
    /// of its table and one of its index, plus the payloads; 0 without changes.
    private static func bytesWritten(changes: Int, payloadBytes: Int) -> Int {
        changes == 0 ? 0 : (8 + changes) * pageBytes + payloadBytes
    }

    /// The error for a transaction that does not fit on the disk, as far as is known before the
    /// commit.
    private struct LackOfSpace: Error {
        let error: StoreError
    }

    /// Copies the write-ahead log and returns its space to the file system, which may be the space
    /// that is missing.
    private func reclaimSpace(_ db: Database) {
        guard let pages = try? Self.checkpoint(db, givesBackSpace: true) else { return }
        state.withLock { $0.uncopiedBytes = Int64(pages) * Int64(Self.pageBytes) }
    }

    /// Returns the reason why the disk has no space for a transaction; `nil` if it has.
    private func lackOfSpace(bytes: Int) -> StoreError? {
        guard bytes > 0, let files, let free = configuration.freeBytes(files.directory) else {
            return nil
        }
        let uncopied = state.withLock { $0.uncopiedBytes }
        let needed = policy.bytesNeeded(transaction: Int64(bytes), uncopied: uncopied)
        return free >= needed ? nil : .diskFull(files.directory, free: free, needed: needed)
    }

    private func note(_ outcome: Outcome, jobs: Int, seconds: Double) {
        state.withLock { state in
            state.figures.head = outcome.head
            state.figures.floor = outcome.floor
            state.usage.add(outcome.usage)
            state.figures.commits += 1
            state.figures.jobs += jobs
            state.figures.failedJobs += outcome.answers.count { !$0.succeeded }
            state.figures.rows += outcome.rows
            state.figures.commitSeconds += seconds
            state.figures.slowestCommitSeconds = max(state.figures.slowestCommitSeconds, seconds)
            state.recordWrite(bytes: outcome.bytes)
        }
    }

    // MARK: Refused writes

    private static var milliseconds: Int64 {
        Int64(DispatchTime.now().uptimeNanoseconds / 1_000_000)
    }

    /// Records a transaction that was not committed, and starts probing until writes succeed again.
    private func noteRefusal(bytes: Int) {
        let mustProbe = state.withLock { state in
            state.figures.failedCommits += 1
            state.health.recordRefusal(bytes: bytes, at: Self.milliseconds)
            // A write-ahead log that has been copied is reused from its start without new space. On
            // a full disk that may be the only space for retention to work with.
            state.writtenBytes = .max / 2
            defer { state.isProbeScheduled = true }
            return !state.isProbeScheduled
        }
        if mustProbe { scheduleProbe() }
    }

    private func scheduleProbe() {
        let delay = DispatchTimeInterval.milliseconds(Int(WriteHealth.probeMilliseconds))
        queue.asyncAfter(deadline: .now() + delay) { [weak self] in self?.probe() }
    }

    /// Checks with a separate write that the disk works, unless another write has shown it.
    private func probe() {
        let bytes = state.withLock { state -> Int? in
            let bytes = state.isClosed ? nil : state.health.missingProofBytes
            state.isProbeScheduled = bytes != nil
            return bytes
        }
        guard let bytes else { return }
        let job = Job(
            lane: .gateway, cost: 0, freesSpace: false, isLocal: true,
            run: { transaction in
                let isWritten: Void? = try? transaction.writeProbe(bytes: bytes)
                return Answer(succeeded: isWritten != nil) { _ in }
            }, fail: { _ in })
        var size = 0
        do {
            let outcome = try transact([job], size: &size)
            state.withLock { $0.recordWrite(bytes: outcome.bytes) }
        } catch {
            state.withLock { $0.health.recordRefusal(bytes: size, at: Self.milliseconds) }
        }
        scheduleProbe()
    }

    // MARK: Checkpoints

    /// Copies the write-ahead log into the database file when due. This happens after the jobs are
    /// completed, rather than during a commit that callers wait for. Readers hold their snapshots
    /// for a single bounded batch only, so that the log can soon be reused from its start.
    private func checkpointIfDue() {
        let written = state.withLock { $0.writtenBytes }
        guard written >= policy.checkpointBytesFloor else { return }
        let free = files.flatMap { configuration.freeBytes($0.directory) }
        guard policy.isCheckpointDue(written: written, free: free) else { return }
        let isScarce = free.map { $0 < DiskSpacePolicy.scarceBytes } ?? false
        let uncopiedPages = try? database.writeWithoutTransaction { db in
            try Self.checkpoint(db, givesBackSpace: isScarce)
        }
        state.withLock {
            $0.writtenBytes = 0
            // A failure costs only disk space: committed data stays in the log.
            guard let uncopiedPages else { return }
            $0.uncopiedBytes = Int64(uncopiedPages) * Int64(Self.pageBytes)
            $0.figures.checkpoints += 1
        }
    }

    /// Copies as much as readers allow, without waiting for them.
    ///
    /// - Parameter givesBackSpace: Whether to truncate the write-ahead log if it is copied
    ///   completely and no connection reads it.
    /// - Returns: The number of pages that remain to be copied.
    static func checkpoint(_ db: Database, givesBackSpace: Bool) throws -> Int {
        if givesBackSpace {
            sqlite3_busy_timeout(db.sqliteConnection, 0)
            defer {
                sqlite3_busy_timeout(
                    db.sqliteConnection, CInt(StoreConfiguration.busySeconds * 1_000))
            }
            let code = sqlite3_wal_checkpoint_v2(
                db.sqliteConnection, "main", SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
            if code == SQLITE_OK { return 0 }
            guard code == SQLITE_BUSY else {
                throw DatabaseError(resultCode: ResultCode(rawValue: code))
            }
        }
        let counts = try db.checkpoint(.passive)
        return max(0, counts.walFrameCount - counts.checkpointedFrameCount)
    }
}

/// The CPU time of the longest of several pieces of work on one thread.
private struct LongestTurn {
    var nanoseconds: Int64 = 0

    mutating func measure<T>(_ work: () -> T) -> T {
        let began = gateway_thread_cpu_nanoseconds()
        defer { nanoseconds = max(nanoseconds, gateway_thread_cpu_nanoseconds() - began) }
        return work()
    }
}
