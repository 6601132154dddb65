/// The limits of a store. The defaults suit a gateway with one disk.
package struct StoreConfiguration: Sendable {
    /// The maximum number of jobs waiting for the writer; further ones are rejected with
    /// `StoreError.busy`.
    package var pendingJobsMax = 8_192
    /// The maximum cost of jobs waiting for the writer, in the caller's unit, such as bytes. A
    /// single job that exceeds it is accepted only when no other waits, so that it is not rejected
    /// forever.
    package var pendingCostMax = 64 << 20
    /// The cost of one app's jobs after which another app has its turn.
    package var turnCost = 65_536
    package var transactionJobsMax = 1_024
    /// The cost at which a transaction accepts no further job. It always accepts at least one.
    package var transactionCostMax = 16 << 20
    /// The number of write-ahead log pages (4 KiB each, estimated) after which the writer copies
    /// them into the database file, once the jobs of the current transaction are completed.
    package var checkpointPages = 16_384
    /// The maximum size of the writer's page cache, KiB. Event ids arrive in random order, so the
    /// index that finds duplicates is fast only while most of it is in memory.
    package var cacheKiB = 65_536
    /// The maximum number of reading connections besides the writer.
    package var readersMax = 4
    /// The maximum payload bytes of one page of a listing or one batch of a replay, which always
    /// contain at least one row.
    package var batchBytesMax = 8 << 20
    /// The maximum number of stored epochs. Cursors of removed ones are unknown, so everything is
    /// stale for them.
    package var epochsMax = 4_096
    /// Whether opening the store verifies the structure of the whole database, in time linear in
    /// its size.
    package var verifiesOnOpen = false

    /// Returns the free space of a directory's file system, bytes; `nil` if it is unknown.
    var freeBytes: @Sendable (_ directory: String) -> Int64? = DiskSpace.freeBytes
    /// The longest wait for another process that has locked the database, seconds.
    static let busySeconds = 5.0

    package init() {}
}
