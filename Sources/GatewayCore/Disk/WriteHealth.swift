/// Judges from the fate of transactions whether the disk takes writes.
///
/// A refused transaction casts doubt, and only a write can clear it: a transaction that changed
/// nothing touched no disk, and a small one may fit where the refused one did not. After a proof
/// the disk has to stay quiet for a moment, so that large writes that fail between small ones that
/// succeed do not make the verdict alternate.
package struct WriteHealth: Sendable, Equatable {
    /// Largest write that is required as proof, in bytes.
    package static let proofBytesMax = 64 << 10
    /// Time since the last refusal before a proof counts.
    package static let quietMilliseconds: Int64 = 2_000
    /// Time between two writes that are made only to prove that the disk is well.
    package static let probeMilliseconds: Int64 = 250

    private struct Doubt: Equatable {
        var refusedAt: Int64
        /// Size of the largest refused transaction, limited to ``WriteHealth/proofBytesMax``.
        var proofBytes: Int
        var isProven = false
    }

    private var doubt: Doubt?

    /// A disk that has refused nothing.
    package init() {}

    /// Records a transaction that the disk refused.
    ///
    /// - Parameters:
    ///   - bytes: Bytes it would have written, as far as it got.
    ///   - now: Monotonic milliseconds.
    package mutating func recordRefusal(bytes: Int, at now: Int64) {
        let proofBytes = min(max(bytes, 1), Self.proofBytesMax)
        guard isRefusing(at: now), let earlier = doubt else {
            doubt = Doubt(refusedAt: now, proofBytes: proofBytes)
            return
        }
        doubt = Doubt(refusedAt: now, proofBytes: max(proofBytes, earlier.proofBytes))
    }

    /// Records a transaction that is on disk.
    ///
    /// - Parameter bytes: Bytes it wrote; 0 if it changed nothing.
    package mutating func recordWrite(bytes: Int) {
        guard let doubt, bytes >= doubt.proofBytes else { return }
        self.doubt?.isProven = true
    }

    /// Returns whether writes count as refused at a moment, in monotonic milliseconds.
    package func isRefusing(at now: Int64) -> Bool {
        guard let doubt else { return false }
        return !doubt.isProven || now - doubt.refusedAt < Self.quietMilliseconds
    }

    /// Size of the write that would prove the disk well; `nil` while no proof is missing.
    package var missingProofBytes: Int? {
        guard let doubt, !doubt.isProven else { return nil }
        return doubt.proofBytes
    }
}
