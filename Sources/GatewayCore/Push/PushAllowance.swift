import WidgetModel

/// A token bucket: so many pushes a day, refilled evenly, some of them kept for what is urgent.
///
/// In any 24 hours, the last moment excluded, no more than ``Terms/perDay`` pushes go out, those
/// saved up included.
package struct PushAllowance: Sendable, Hashable {
    /// What is allowed.
    package struct Terms: Sendable, Hashable {
        /// Pushes in any 24 hours, at least 1.
        package let perDay: Int
        /// How many of them can be saved up, 1...``perDay``. The more there are, the longer
        /// each takes to come back.
        package let burst: Int
        /// How many of those saved up only ``WidgetModel/Urgency/high`` may use,
        /// 0..<``burst``.
        package let reserve: Int

        /// Terms; values out of range count as the nearest one in it.
        package init(perDay: Int, burst: Int, reserve: Int) {
            self.perDay = min(max(perDay, 1), 100_000)
            self.burst = min(max(burst, 1), self.perDay)
            self.reserve = min(max(reserve, 0), self.burst - 1)
        }

        /// How many come back in 24 hours: what was saved up counts too, and the first of a day
        /// lies a whole day before the one that came back for it.
        var refill: Int64 { Int64(perDay - burst + 1) }
        var creditMax: Int64 { Int64(burst) * PushAllowance.price }
    }

    /// What one push costs: with a refill of n a day, each millisecond brings n.
    private static let price: Int64 = 86_400_000

    private var terms: Terms
    private var credit: Int64
    private var countedAt: Int64

    /// All that can be saved up is there.
    package init(_ terms: Terms, now: Int64) {
        self.init(terms, credit: terms.creditMax, now: now)
    }

    /// A credit that was persisted; under new terms it is bounded by them.
    package init(_ terms: Terms, credit: Int64, now: Int64) {
        self.terms = terms
        self.credit = min(max(credit, 0), terms.creditMax)
        countedAt = now
    }

    /// What is there now, to be persisted.
    package func credit(now: Int64) -> Int64 {
        let elapsed = now.elapsed(since: countedAt)
        let missing = terms.creditMax - credit
        // Compared before it is multiplied, so that no time is too long.
        guard elapsed <= missing / terms.refill else { return terms.creditMax }
        return credit + elapsed * terms.refill
    }

    /// When a push of that urgency is allowed: `now`, or later if nothing else is pushed.
    package func due(_ urgency: Urgency, now: Int64) -> Int64 {
        let kept = urgency == .high ? 0 : Int64(terms.reserve)
        let missing = (kept + 1) * Self.price - credit(now: now)
        guard missing > 0 else { return now }
        return max(now, countedAt).later(by: (missing + terms.refill - 1) / terms.refill)
    }

    /// A push that was counted did not go out.
    package mutating func giveBack(now: Int64) {
        credit = min(terms.creditMax, credit(now: now) + Self.price)
        countedAt = max(countedAt, now)
    }

    /// Goes by other terms. The share of what can be saved up that was spent stays spent: no change
    /// of terms, nor to and fro, brings anything back.
    package mutating func adopt(_ terms: Terms, now: Int64) {
        // No greater than the new bound, so it fits.
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
