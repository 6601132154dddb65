import Dispatch
import GRDB
import Synchronization

/// The one writer of the store: takes the jobs that wait, runs them in order inside one
/// transaction, and answers them all once it is on disk. While the disk works, the next
/// transaction gathers.
final class GroupCommit: Sendable {
    /// A job that waits, and how to answer its caller.
    struct Job: Sendable {
        /// Counts against the limits.
        let cost: Int
        /// Does the work, once for each attempt at its transaction; the answer of the last is given
        /// when the fate of the transaction is known.
        let run: @Sendable (inout StoreTransaction) -> Answer
        /// Answers the caller if the job could not run or its transaction failed.
        let fail: @Sendable (StoreError) -> Void
    }

    /// What a job has come to, as far as it is its own doing.
    struct Answer: Sendable {
        let succeeded: Bool
        /// Answers the caller; called with the head of the log after the commit.
        let give: @Sendable (UInt64) -> Void
    }

    private struct State {
        var waiting: [Job] = []
        var waitingCost = 0
        var isDraining = false
        var isClosed = false
        var figures = StoreFigures()
        /// Write-ahead log pages written since the last checkpoint, estimated from above.
        var dirtyPages = 0
    }

    /// What a transaction leaves behind when it is on disk.
    private struct Outcome {
        let answers: [Answer]
        let rows: Int
        let payloadBytes: Int
        let effects: [@Sendable () -> Void]
        let head: UInt64
        let floor: UInt64
        let changes: Int
    }

    private let database: any DatabaseWriter
    private let configuration: StoreConfiguration
    private let fingerprint: EventFingerprint
    private let observer: @Sendable (CommitFigures) -> Void
    /// Held here because a job that is still queued outlives the store itself.
    private let lock: DirectoryLock?
    private let queue = DispatchQueue(label: "store.writer")
    private let state: Mutex<State>

    init(
        database: any DatabaseWriter, lock: DirectoryLock?, configuration: StoreConfiguration,
        fingerprint: EventFingerprint, head: UInt64, floor: UInt64,
        observer: @escaping @Sendable (CommitFigures) -> Void
    ) {
        self.database = database
        self.lock = lock
        self.configuration = configuration
        self.fingerprint = fingerprint
        self.observer = observer
        var state = State()
        state.figures.head = head
        state.figures.floor = floor
        self.state = Mutex(state)
    }

    /// What has been done so far, without the sizes of files.
    var figures: StoreFigures {
        state.withLock {
            var figures = $0.figures
            figures.waitingJobs = $0.waiting.count
            figures.waitingCost = $0.waitingCost
            return figures
        }
    }

    /// Queues a job, or fails it at once if there is no room.
    func submit(_ job: Job) {
        enum Verdict {
            case queued, queuedFirst
            case refused(StoreError)
        }
        let verdict = state.withLock { state -> Verdict in
            if state.isClosed { return .refused(.closed) }
            let (cost, overflows) = state.waitingCost.addingReportingOverflow(job.cost)
            let isFull =
                state.waiting.count >= configuration.pendingJobsMax
                || overflows || cost > configuration.pendingCostMax
            if isFull, !state.waiting.isEmpty {
                state.figures.refusedJobs += 1
                return .refused(.busy)
            }
            state.waiting.append(job)
            state.waitingCost = overflows ? .max : cost
            defer { state.isDraining = true }
            return state.isDraining ? .queued : .queuedFirst
        }
        switch verdict {
        case .queued: break
        case .queuedFirst: queue.async { self.drain() }
        case .refused(let error): job.fail(error)
        }
    }

    /// Whether no further job is taken.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Takes no further job, finishes those that wait, then calls `body` on the writer's thread,
    /// and tells it whether this is the call that closes.
    func close(_ body: @escaping @Sendable (_ isFirst: Bool) -> Void) {
        let isFirst = state.withLock { state in
            defer { state.isClosed = true }
            return !state.isClosed
        }
        // The queue is serial: a drain that has been scheduled ends before this begins, and it
        // ends only when nothing waits.
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

    /// The jobs of the next transaction; empty if nothing waits.
    private func takeJobs() -> [Job] {
        state.withLock { state in
            var count = 0
            var cost = 0
            for job in state.waiting.prefix(configuration.transactionJobsMax) {
                if count > 0, cost >= configuration.transactionCostMax { break }
                count += 1
                cost = cost.addingReportingOverflow(job.cost).overflow ? .max : cost + job.cost
            }
            let jobs = Array(state.waiting.prefix(count))
            state.waiting.removeFirst(count)
            state.waitingCost = state.waiting.isEmpty ? 0 : max(0, state.waitingCost - cost)
            if jobs.isEmpty { state.isDraining = false }
            return jobs
        }
    }

    private func run(_ jobs: [Job]) {
        let begin = ContinuousClock.now
        let position = state.withLock { (head: $0.figures.head, floor: $0.figures.floor) }
        let outcome: Outcome
        do {
            outcome = try database.writeWithoutTransaction { db in
                try transact(db, jobs: jobs, head: position.head, floor: position.floor)
            }
        } catch {
            let error = (error as? StoreError) ?? .unavailable(reason: "unexpected error")
            state.withLock {
                $0.figures.failedCommits += 1
                // A write-ahead log that has been copied starts over, in space it has already:
                // on a full disk that may be all there is for retention to work with.
                $0.dirtyPages = configuration.checkpointPages
            }
            for job in jobs { job.fail(error) }
            return
        }
        let seconds = (ContinuousClock.now - begin) / .seconds(1)
        note(outcome, jobs: jobs.count, seconds: seconds)
        for effect in outcome.effects { effect() }
        for answer in outcome.answers { answer.give(outcome.head) }
        observer(CommitFigures(jobs: jobs.count, rows: outcome.rows, seconds: seconds))
    }

    /// Runs the jobs and commits, or leaves nothing behind and throws a `StoreError`.
    private func transact(
        _ db: Database, jobs: [Job], head: UInt64, floor: UInt64
    ) throws -> Outcome {
        do {
            // Answers of jobs that failed after they had changed something: they are not run again.
            var failed: [Int: Answer] = [:]
            while true {
                let attempt = try attempt(db, jobs, head, floor, &failed)
                if let attempt { return attempt }
                try db.rollback()
            }
        } catch {
            // SQLite may have rolled back by itself already, which this allows for.
            try? db.rollback()
            if let error = error as? DatabaseError { throw StoreError(error) }
            throw error
        }
    }

    /// Runs the jobs but those in `failed`, and commits.
    ///
    /// - Returns: `nil` when a job failed and its changes have to be undone; it is in `failed` now.
    private func attempt(
        _ db: Database, _ jobs: [Job], _ head: UInt64, _ floor: UInt64,
        _ failed: inout [Int: Answer]
    ) throws -> Outcome? {
        let changesBefore = db.totalChangesCount
        var transaction = StoreTransaction(
            connection: WriterConnection(db), fingerprint: fingerprint, head: head, floor: floor)
        try transaction.connection.run(.begin)
        var answers: [Answer] = []
        answers.reserveCapacity(jobs.count)
        for (index, job) in jobs.enumerated() {
            if let answer = failed[index] {
                answers.append(answer)
                continue
            }
            transaction.beginJob()
            let answer = job.run(&transaction)
            let mustUndo = transaction.endJob(succeeded: answer.succeeded)
            if let failure = transaction.failure { throw failure }
            if mustUndo {
                failed[index] = answer
                return nil
            }
            answers.append(answer)
        }
        try transaction.connection.run(.commit)
        return Outcome(
            answers: answers, rows: transaction.rows, payloadBytes: transaction.payloadBytes,
            effects: transaction.effects, head: transaction.head, floor: transaction.floor,
            changes: db.totalChangesCount - changesBefore)
    }

    private func note(_ outcome: Outcome, jobs: Int, seconds: Double) {
        // Each change dirties a page of its table and one of its index; the payloads come on top.
        let pages = outcome.changes == 0 ? 0 : 8 + outcome.changes + outcome.payloadBytes / 4_096
        state.withLock { state in
            state.figures.head = outcome.head
            state.figures.floor = outcome.floor
            state.figures.commits += 1
            state.figures.jobs += jobs
            state.figures.failedJobs += outcome.answers.count { !$0.succeeded }
            state.figures.rows += outcome.rows
            state.figures.commitSeconds += seconds
            state.figures.slowestCommitSeconds = max(state.figures.slowestCommitSeconds, seconds)
            state.dirtyPages += pages
        }
    }

    /// Copies the write-ahead log into the database file now and then. Done here, after the
    /// callers were answered, rather than inside a commit that somebody waits for. Readers hold
    /// their snapshots for one bounded batch only, so that the log can start over soon after.
    private func checkpointIfDue() {
        guard state.withLock({ $0.dirtyPages }) >= configuration.checkpointPages else { return }
        // A failure costs nothing but disk space: what is committed stays in the log.
        let done: Void? = try? database.writeWithoutTransaction { _ = try $0.checkpoint(.passive) }
        state.withLock {
            $0.dirtyPages = 0
            $0.figures.checkpoints += done == nil ? 0 : 1
        }
    }
}
