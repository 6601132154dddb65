/// What one transaction did; handed to the observer of the store after each commit.
package struct CommitFigures: Sendable {
    /// Jobs that shared the transaction, failed ones included.
    package let jobs: Int
    /// Log rows it added.
    package let rows: Int
    /// How long it took from its beginning until it was on disk, in seconds.
    package let seconds: Double
    /// CPU time of the longest of its jobs, with what that did once it was on disk, in nanoseconds.
    package let longestJobNanoseconds: Int64
}

/// A snapshot of what the store has done since it was opened, and of its size.
package struct StoreFigures: Sendable, Equatable {
    /// Transactions that reached the disk.
    package internal(set) var commits = 0
    /// Transactions that the disk refused.
    package internal(set) var failedCommits = 0
    /// Whether the disk refuses writes, as far as the last ones tell.
    package internal(set) var isRefusingWrites = false
    /// Jobs that took part in a transaction that reached the disk.
    package internal(set) var jobs = 0
    /// Jobs among them that failed by an error of their own.
    package internal(set) var failedJobs = 0
    /// Jobs turned away with `StoreError.busy`.
    package internal(set) var refusedJobs = 0
    /// Log rows added.
    package internal(set) var rows = 0
    /// Time spent in transactions that reached the disk, in seconds.
    package internal(set) var commitSeconds = 0.0
    /// Longest of these transactions, in seconds.
    package internal(set) var slowestCommitSeconds = 0.0
    /// Times the write-ahead log was copied into the database file.
    package internal(set) var checkpoints = 0
    /// Jobs waiting for the writer now.
    package internal(set) var waitingJobs = 0
    /// Their cost.
    package internal(set) var waitingCost = 0
    /// Highest sequence on disk.
    package internal(set) var head: UInt64 = 0
    /// Highest sequence ever pruned.
    package internal(set) var floor: UInt64 = 0
    /// Size of the database file in bytes; 0 in memory.
    package internal(set) var databaseBytes: Int64 = 0
    /// Size of the write-ahead log file in bytes; 0 in memory.
    package internal(set) var walBytes: Int64 = 0
}
