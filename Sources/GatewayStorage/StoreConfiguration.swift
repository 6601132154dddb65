/// The limits of a store. Every one has a default that suits a gateway with one disk.
package struct StoreConfiguration: Sendable {
    /// Most jobs that may wait for the writer; one more is refused with `StoreError.busy`.
    package var pendingJobsMax = 8_192
    /// Most cost (the caller's unit, bytes for instance) that may wait for the writer. A job that
    /// alone costs more is taken only when nothing waits, so that it is not refused for ever.
    package var pendingCostMax = 64 << 20
    /// Cost that the jobs of one app may have before it is another app's turn.
    package var turnCost = 65_536
    /// Most jobs that share one transaction.
    package var transactionJobsMax = 1_024
    /// Cost at which a transaction takes no further job. It always takes at least one.
    package var transactionCostMax = 16 << 20
    /// Write-ahead log pages (4 KiB each, estimated) after which the writer copies them into the
    /// database file, once the callers of the current transaction have been answered.
    package var checkpointPages = 16_384
    /// Most memory the writer's page cache takes, in KiB. Event ids arrive in random order, so the
    /// index that finds duplicates is only fast while most of it is in memory.
    package var cacheKiB = 65_536
    /// Most connections that read beside the writer.
    package var readersMax = 4
    /// Most bytes of payload that one page of a listing or one batch of a replay holds. A page or
    /// batch always holds at least one row.
    package var batchBytesMax = 8 << 20
    /// Most epochs kept. Cursors of forgotten ones are unknown, which makes everything stale.
    package var epochsMax = 4_096
    /// Whether opening the store reads the whole database to verify its structure, which takes
    /// time in proportion to its size.
    package var verifiesOnOpen = false

    /// Returns the free space of a directory's file system, in bytes; `nil` where it is unknown.
    var freeBytes: @Sendable (_ directory: String) -> Int64? = DiskSpace.freeBytes
    /// Longest wait for another process that holds the database.
    static let busySeconds = 5.0

    /// The default limits.
    package init() {}
}
