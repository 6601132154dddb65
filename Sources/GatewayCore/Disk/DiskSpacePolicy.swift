/// Decides from sizes when the write-ahead log is copied into the database file, and which
/// transactions would leave too little room for that and for the next start.
///
/// Copying needs room for every page that the database file does not have yet. That is at most what
/// the write-ahead log holds and has not been copied ("uncopied"). All sizes are in bytes.
package struct DiskSpacePolicy: Sendable, Equatable {
    /// Free space that ordinary writes leave alone: a start writes an epoch, an index of the
    /// write-ahead log and small files before it serves, and retention writes before it frees.
    package static let reservedBytes: Int64 = 1 << 20
    /// Free space below which a copied write-ahead log is given back to the file system.
    package static let scarceBytes: Int64 = 16 << 20
    /// Uncopied bytes below which copying is not worth its syncs.
    private static let checkpointBytesMin: Int64 = 256 << 10
    /// Share of the free space that may be uncopied.
    private static let uncopiedShare: Int64 = 4

    /// Uncopied bytes at which copying is due, however much space is free.
    package let checkpointBytesMax: Int64

    /// A policy with a limit for uncopied bytes.
    package init(checkpointBytesMax: Int64) {
        self.checkpointBytesMax = checkpointBytesMax
    }

    /// Bytes written below which copying is never due, whatever is free.
    package var checkpointBytesFloor: Int64 { min(checkpointBytesMax, Self.checkpointBytesMin) }

    /// Returns whether the write-ahead log is to be copied now.
    ///
    /// - Parameters:
    ///   - written: Bytes written to the write-ahead log since copying was last tried.
    ///   - free: Free space; `nil` if unknown.
    package func isCheckpointDue(written: Int64, free: Int64?) -> Bool {
        guard let free else { return written >= checkpointBytesMax }
        let share = max(free / Self.uncopiedShare, Self.checkpointBytesMin)
        return written >= min(checkpointBytesMax, share)
    }

    /// Returns the free space without which a transaction is refused.
    ///
    /// - Parameters:
    ///   - transaction: Bytes it writes to the write-ahead log, estimated from above.
    ///   - uncopied: Bytes of the write-ahead log that are not in the database file.
    package func bytesNeeded(transaction: Int64, uncopied: Int64) -> Int64 {
        // It takes its room twice: in the write-ahead log now, in the database file later.
        let twice = transaction.addingClamped(transaction)
        return twice.addingClamped(uncopied).addingClamped(Self.reservedBytes)
    }
}

extension Int64 {
    fileprivate func addingClamped(_ other: Int64) -> Int64 {
        let (sum, overflows) = addingReportingOverflow(other)
        return overflows ? .max : sum
    }
}
