import WidgetModel

/// A token bucket of pushes per day, refilled evenly, with a reserve for urgent pushes.
///
/// In any 24 hours, excluding the last instant, at most ``Terms/perDay`` pushes are sent, including
/// saved ones.
package struct PushAllowance: Sendable, Hashable {
    /// The limits of the allowance.
    package struct Terms: Sendable, Hashable {
        /// The number of pushes in any 24 hours, at least 1.
        package let perDay: Int
        /// The number of pushes that can be saved up, 1...``perDay``. The larger it is, the longer
        /// each takes to refill.
        package let burst: Int
        /// The number of saved pushes reserved for ``WidgetModel/Urgency/high``, 0..<``burst``.
        package let reserve: Int

        /// Creates limits; values out of range are clamped.
        package init(perDay: Int, burst: Int, reserve: Int) {
            self.perDay = min(max(perDay, 1), 100_000)
            self.burst = min(max(burst, 1), self.perDay)
            self.reserve = min(max(reserve, 0), self.burst - 1)
        }

        /// The number of pushes refilled in 24 hours. Saved pushes count too, and the first push of
        /// a day is a whole day before the one refilled for it.
        var refill: Int64 { Int64(perDay - burst + 1) }
        var creditMax: Int64 { Int64(burst) * PushAllowance.price }
    }

    /// The cost of one push in units: with a refill of n per day, each millisecond adds n units.
    private static let price: Int64 = 86_400_000

    private var terms: Terms
    private var credit: Int64
    private var countedAt: Int64

    package init(_ terms: Terms, now: Int64) {
        self.init(terms, credit: terms.creditMax, now: now)
    }

    /// Restores a stored credit, limited by new terms.
    package init(_ terms: Terms, credit: Int64, now: Int64) {
        self.terms = terms
        self.credit = min(max(credit, 0), terms.creditMax)
        countedAt = now
    }

    /// Returns the current credit, to be stored.
    package func credit(now: Int64) -> Int64 {
        let elapsed = now.elapsed(since: countedAt)
        let missing = terms.creditMax - credit
        // Compared before the multiplication, so that no duration overflows.
        guard elapsed <= missing / terms.refill else { return terms.creditMax }
        return credit + elapsed * terms.refill
    }

    /// Returns the time at which a push of this urgency is allowed: `now`, or later if nothing else
    /// is pushed.
    package func due(_ urgency: Urgency, now: Int64) -> Int64 {
        let kept = urgency == .high ? 0 : Int64(terms.reserve)
        let missing = (kept + 1) * Self.price - credit(now: now)
        guard missing > 0 else { return now }
        return max(now, countedAt).later(by: (missing + terms.refill - 1) / terms.refill)
    }

    /// The saved pushes at one moment.
    package struct Savings: Sendable, Hashable {
        /// The pushes that may be sent now.
        package let left: Int
        /// The part of ``left`` that is reserved for urgent changes.
        package let reserved: Int
        package let terms: Terms
        /// The time of the next refill by one push; `nil` if the allowance is full.
        package let refillsAt: Int64?
    }

    /// Returns the pushes that are saved now.
    package func savings(now: Int64) -> Savings {
        let credit = credit(now: now)
        let left = Int(credit / Self.price)
        let missing = Int64(left + 1) * Self.price - credit
        return Savings(
            left: left, reserved: min(left, terms.reserve), terms: terms,
            refillsAt: left >= terms.burst
                ? nil : now.later(by: (missing + terms.refill - 1) / terms.refill))
    }

    /// Reverts a counted push that was not sent.
    package mutating func giveBack(now: Int64) {
        credit = min(terms.creditMax, credit(now: now) + Self.price)
        countedAt = max(countedAt, now)
    }

    /// Adopts other limits. The spent share of the saved pushes stays spent, so that changing the
    /// limits back and forth restores nothing.
    package mutating func adopt(_ terms: Terms, now: Int64) {
        // The quotient fits, because it is at most the new limit.
        let product = UInt64(credit(now: now)).multipliedFullWidth(by: UInt64(terms.creditMax))
        credit = Int64(UInt64(self.terms.creditMax).dividingFullWidth(product).quotient)
        countedAt = max(countedAt, now)
        self.terms = terms
    }

    /// Counts a push that is due.
    package mutating func spend(now: Int64) {
        credit = max(0, credit(now: now) - Self.price)
        countedAt = max(countedAt, now)
    }
}
