import NIOCore

/// A token bucket that limits the work a peer causes with input where it is expected to send little
/// or nothing.
///
/// One unit is about the work of receiving one byte of application data; records and key updates
/// cost more than their bytes. A pure value: the caller passes the time, which may stand still.
package struct InputBudget: Equatable, Sendable {
    /// The capacity and refill rate of a bucket.
    package struct Rate: Equatable, Sendable {
        /// Units that may be spent at once.
        package var burst: Int
        /// Units regained per second.
        package var perSecond: Int

        package init(burst: Int, perSecond: Int) {
            self.burst = burst
            self.perSecond = perSecond
        }
    }

    /// Units for a record, in addition to its bytes.
    static let recordCost = 64
    /// Units for a key update, in addition to its record: four steps of HKDF.
    static let keyUpdateCost = 1_024

    /// Units spent and not yet regained.
    private(set) var spent = 0
    /// The time up to which units have been regained.
    private var regainedUntil: NIODeadline

    /// A full bucket.
    init(now: NIODeadline) { regainedUntil = now }

    /// Spends units. Returns false when the bucket does not hold that many; the bucket is empty
    /// then.
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
        // Only whole units are regained; the time that is left over counts towards the next unit.
        let regained = elapsed / perUnit
        guard regained > 0 else { return }
        spent -= Int(clamping: min(regained, Int64(spent)))
        regainedUntil = spent == 0 ? now : regainedUntil + .nanoseconds(regained * perUnit)
    }
}

/// Counts a peer's ciphertext that carries no content: key updates, and the framing of tiny
/// records.
struct EmptyInput: Equatable, Sendable {
    /// Bytes received since the last content; at most the size of one record.
    private var unmatched = 0

    /// Records the ciphertext and the content bytes of one read.
    ///
    /// - Returns: The number of bytes that carried no content, beyond an allowance for framing as
    ///   large as the content.
    mutating func record(received: Int, content: Int) -> Int {
        unmatched += received
        // A record's content becomes readable with its last byte.
        let kept = content > 0 ? 0 : min(unmatched, Self.recordBytesMax)
        defer { unmatched = kept }
        return max(0, unmatched - kept - 2 * content)
    }

    private static let recordBytesMax = RecordFraming.headerBytes + RecordFraming.bodyBytesMax
}

/// The reason why the gateway ended a stream because of its reader's input.
package enum ReaderViolation: String, CaseIterable, Sendable {
    /// The reader sent more than its budget; readers have no reason to send anything.
    case flood
    /// The rest of a record did not arrive in time.
    case incompleteRecord = "incomplete_record"
}
