/// Decides from sizes when to copy the write-ahead log into the database file, and which
/// transactions would leave too little space for this and for the next start.
///
/// Copying needs space for every page that the database file does not contain yet: at most the part
/// of the write-ahead log that has not been copied ("uncopied"). All sizes are in bytes.
package struct DiskSpacePolicy: Sendable, Equatable {
    /// The free space that ordinary writes must leave: a start writes an epoch, an index of the
    /// write-ahead log and small files before it serves, and retention writes before it frees
    /// space.
    package static let reservedBytes: Int64 = 1 << 20
    /// The free space below which a copied write-ahead log is returned to the file system.
    package static let scarceBytes: Int64 = 16 << 20
    /// The uncopied bytes below which copying is not worth its syncs.
    private static let checkpointBytesMin: Int64 = 256 << 10
    /// The divisor for the part of the free space that may be uncopied.
    private static let uncopiedShare: Int64 = 4

    /// The uncopied bytes at which copying is due, however much space is free.
    package let checkpointBytesMax: Int64

    /// Creates a policy with a limit for uncopied bytes.
    package init(checkpointBytesMax: Int64) {
        self.checkpointBytesMax = checkpointBytesMax
    }

    /// The written bytes below which copying is never due, whatever the free space.
    package var checkpointBytesFloor: Int64 { min(checkpointBytesMax, Self.checkpointBytesMin) }

    /// Returns whether the write-ahead log must be copied now.
    ///
    /// - Parameters:
    ///   - written: The bytes written to the write-ahead log since the last attempt to copy it.
    ///   - free: The free space; `nil` if unknown.
    package func isCheckpointDue(written: Int64, free: Int64?) -> Bool {
        guard let free else { return written >= checkpointBytesMax }
        let share = max(free / Self.uncopiedShare, Self.checkpointBytesMin)
        return written >= min(checkpointBytesMax, share)
    }

    /// Returns the free space that a transaction requires.
    ///
    /// - Parameters:
    ///   - transaction: The bytes it writes to the write-ahead log, as an upper estimate.
    ///   - uncopied: The bytes of the write-ahead log that are not in the database file.
    package func bytesNeeded(transaction: Int64, uncopied: Int64) -> Int64 {
        // It needs its space twice: in the write-ahead log now, and in the database file later.
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
