import Synchronization

/// When recent changes were accepted, for the time until they are confirmed: a ring, so that a
/// client which confirms a change of last month is simply not measured.
final class AcceptTimes: Sendable {
    private static let keptMax = 16_384
    private let ring = Mutex<[(sequence: UInt64, at: Int64)]>(
        Array(repeating: (0, 0), count: keptMax))

    /// Notes when the entry at `sequence` was accepted, in milliseconds since 1970.
    func note(_ sequence: UInt64, _ at: Int64) {
        ring.withLock { $0[Int(sequence % UInt64(Self.keptMax))] = (sequence, at) }
    }

    /// When the entry at `sequence` was accepted; `nil` when that is no longer known.
    func time(of sequence: UInt64) -> Int64? {
        ring.withLock {
            let entry = $0[Int(sequence % UInt64(Self.keptMax))]
            return entry.sequence == sequence ? entry.at : nil
        }
    }
}
