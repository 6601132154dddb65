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
    }

    /// Units for a record, in addition to its bytes.
    static let recordCost = 64
    /// Units for a key update, in addition to its record: four steps of HKDF. OpenSSL 3.0 takes 12 us
    /// for one, and 2 us for a small record.
    static let keyUpdateCost = 1_024
    /// More units than anybody spends.
    static let unlimited = Int.max / 2

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

    /// Returns the units that can be spent now, for a caller that then calls `settle`; negative for
    /// a bucket that owes some.
    mutating func available(_ rate: Rate, now: NIODeadline) -> Int {
        regain(rate, now: now)
        return min(rate.burst - spent, Self.unlimited)
    }

    /// Spends `cost` units, or returns them if it is negative. A bucket never holds more than its
    /// burst, but may owe units.
    mutating func settle(_ cost: Int) { spent = max(0, spent + cost) }

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

/// The reason why the gateway ended a stream because of its reader's input.
package enum ReaderViolation: String, CaseIterable, Sendable {
    /// The reader sent more than its budget; readers have no reason to send anything.
    case flood
    /// The rest of a record did not arrive in time.
    case incompleteRecord = "incomplete_record"
}
