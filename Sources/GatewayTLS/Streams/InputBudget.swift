import NIOCore

/// A token bucket for the work that a peer's bytes make where the peer has little or nothing to say.
///
/// One unit is about the work of receiving one byte of application data; records and key updates
/// cost more than their bytes. A pure value: time is handed in and may stand still.
package struct InputBudget: Equatable, Sendable {
    /// The size of a bucket.
    package struct Rate: Equatable, Sendable {
        /// Units that may be spent at once.
        package var burst: Int
        /// Units regained each second.
        package var perSecond: Int

        package init(burst: Int, perSecond: Int) {
            self.burst = burst
            self.perSecond = perSecond
        }
    }

    /// Units for a record beside its bytes.
    static let recordCost = 64
    /// Units for a key update beside its record: four steps of HKDF.
    static let keyUpdateCost = 1_024

    /// Units spent and not regained yet.
    private(set) var spent = 0
    /// The time up to which units have been regained.
    private var regainedUntil: NIODeadline

    /// A full bucket.
    init(now: NIODeadline) { regainedUntil = now }

    /// Spends units; returns false when that is more than the bucket holds, and then it stays empty.
    mutating func spend(_ cost: Int, _ rate: Rate, now: NIODeadline) -> Bool {
        regain(rate, now: now)
        let (sum, isTooMuch) = spent.addingReportingOverflow(max(0, cost))
        guard !isTooMuch, sum <= rate.burst else {
            spent = rate.burst
            return false
        }
        spent = sum
        return true
    }

    private mutating func regain(_ rate: Rate, now: NIODeadline) {
        let elapsed = (now - regainedUntil).nanoseconds
        guard spent > 0, rate.perSecond > 0 else {
            regainedUntil = max(regainedUntil, now)
            return
        }
        let perUnit = max(1, 1_000_000_000 / Int64(rate.perSecond))
        // Only whole units are regained, and the time of no part of one is lost.
        let regained = elapsed / perUnit
        guard regained > 0 else { return }
        spent -= Int(clamping: min(regained, Int64(spent)))
        regainedUntil = spent == 0 ? now : regainedUntil + .nanoseconds(regained * perUnit)
    }
}

/// The part of a peer's ciphertext that carries nothing: key updates, and the frames of tiny records.
struct EmptyInput: Equatable, Sendable {
    /// Received since the last content, at most as much as belongs to one record.
    private var unmatched = 0

    /// Records what one read brought.
    ///
    /// - Returns: The bytes that carried nothing. As much as the content itself may go with it.
    mutating func record(received: Int, content: Int) -> Int {
        unmatched += received
        // A record's content comes with its last byte.
        let kept = content > 0 ? 0 : min(unmatched, Self.recordBytesMax)
        defer { unmatched = kept }
        return max(0, unmatched - kept - 2 * content)
    }

    private static let recordBytesMax = RecordFraming.headerBytes + RecordFraming.bodyBytesMax
}

/// Why the gateway ended a stream because of what its reader sent.
package enum ReaderViolation: String, CaseIterable, Sendable {
    /// More than the budget for readers, who have nothing to say.
    case flood
    /// The rest of a record did not come in time.
    case incompleteRecord = "incomplete_record"
}
