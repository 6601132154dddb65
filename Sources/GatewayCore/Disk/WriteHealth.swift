/// Decides from the outcome of transactions whether the disk accepts writes.
///
/// After a refused transaction the disk counts as refusing until a write proves the opposite. A
/// transaction that changed nothing proves nothing, and a small one may fit where the refused one
/// did not. A proof counts only ``quietMilliseconds`` after the last refusal, so that the state
/// does not alternate when large writes fail between small ones that succeed.
package struct WriteHealth: Sendable, Equatable {
    /// The largest write that is required as proof, bytes.
    package static let proofBytesMax = 64 << 10
    /// The time since the last refusal before a proof counts, ms.
    package static let quietMilliseconds: Int64 = 2_000
    /// The interval between writes that are made only as a proof, ms.
    package static let probeMilliseconds: Int64 = 250

    private struct Doubt: Equatable {
        var refusedAt: Int64
        /// The size of the largest refused transaction, limited to ``WriteHealth/proofBytesMax``.
        var proofBytes: Int
        var isProven = false
    }

    private var doubt: Doubt?

    /// Creates the state of a disk that has refused nothing.
    package init() {}

    /// Records a transaction that the disk refused.
    ///
    /// - Parameters:
    ///   - bytes: The bytes it would have written, as far as known.
    ///   - now: The monotonic time, ms.
    package mutating func recordRefusal(bytes: Int, at now: Int64) {
        let proofBytes = min(max(bytes, 1), Self.proofBytesMax)
        guard isRefusing(at: now), let earlier = doubt else {
            doubt = Doubt(refusedAt: now, proofBytes: proofBytes)
            return
        }
        doubt = Doubt(refusedAt: now, proofBytes: max(proofBytes, earlier.proofBytes))
    }

    /// Records a committed transaction.
    ///
    /// - Parameter bytes: The bytes it wrote; 0 if it changed nothing.
    package mutating func recordWrite(bytes: Int) {
        guard let doubt, bytes >= doubt.proofBytes else { return }
        self.doubt?.isProven = true
    }

    /// Returns whether the disk counts as refusing at a monotonic time, ms.
    package func isRefusing(at now: Int64) -> Bool {
        guard let doubt else { return false }
        return !doubt.isProven || now - doubt.refusedAt < Self.quietMilliseconds
    }

    /// The size of the write that would prove that the disk works; `nil` if no proof is needed.
    package var missingProofBytes: Int? {
        guard let doubt, !doubt.isProven else { return nil }
        return doubt.proofBytes
    }
}
