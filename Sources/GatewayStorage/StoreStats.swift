/// The statistics of one transaction, passed to the store's observer after each commit.
package struct CommitStats: Sendable {
    /// The number of jobs in the transaction, including failed ones.
    package let jobs: Int
    /// The number of added log rows.
    package let rows: Int
    /// The time from its beginning until it was on disk, seconds.
    package let seconds: Double
    /// The CPU time of the longest of its jobs, including its effects after the commit,
    /// nanoseconds.
    package let longestJobNanoseconds: Int64
}

/// The statistics of the store since it was opened, and its size.
package struct StoreStats: Sendable, Equatable {
    /// The number of committed transactions.
    package internal(set) var commits = 0
    /// The number of transactions that the disk refused.
    package internal(set) var failedCommits = 0
    /// Whether the disk refuses writes, judging by the last ones.
    package internal(set) var isRefusingWrites = false
    /// The number of jobs in committed transactions.
    package internal(set) var jobs = 0
    /// The number of these jobs that failed by an error of their own.
    package internal(set) var failedJobs = 0
    /// The number of jobs rejected with `StoreError.busy`.
    package internal(set) var refusedJobs = 0
    /// The number of added log rows.
    package internal(set) var rows = 0
    /// The time spent in committed transactions, seconds.
    package internal(set) var commitSeconds = 0.0
    /// The duration of the longest of these transactions, seconds.
    package internal(set) var slowestCommitSeconds = 0.0
    /// The number of times the write-ahead log was copied into the database file.
    package internal(set) var checkpoints = 0
    package internal(set) var waitingJobs = 0
    package internal(set) var waitingCost = 0
    /// The highest sequence on disk.
    package internal(set) var head: UInt64 = 0
    /// The highest sequence ever pruned.
    package internal(set) var floor: UInt64 = 0
    /// The size of the database file, bytes; 0 in memory.
    package internal(set) var databaseBytes: Int64 = 0
    /// The size of the write-ahead log file, bytes; 0 in memory.
    package internal(set) var walBytes: Int64 = 0

    init() {}
}
