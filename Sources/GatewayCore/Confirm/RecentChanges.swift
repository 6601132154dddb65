/// The recent changes of keys with their times of acceptance, for measuring a client's reports. A
/// version does not suffice: it is only the latest change of a key, and the next change is often
/// accepted while a client rebuilds.
///
/// A ring buffer that overwrites the oldest bumped key. Entries in the same bucket of keys are
/// linked, the latest first. Adding one takes constant time.
package struct RecentChanges: Sendable {
    /// A change that bumped a key.
    package struct Hit: Sendable, Equatable {
        package let sequence: UInt64
        /// The time of acceptance, ms since 1970.
        package let acceptedAt: Int64
    }

    private struct Raise {
        let key: UInt64
        let hit: Hit
        /// The number of the previous entry in its bucket; 0 for none.
        let previous: UInt64
    }

    /// The maximum number of entries of one bucket that a search visits: more than a key gets while
    /// a client is notified of it, builds and reports.
    private static let stepsMax = 4_096

    /// A ring buffer once it is full; entry number `n`, from 1, is at `(n - 1) & mask`.
    private var raises: [Raise] = []
    /// The number of each bucket's latest entry; 0 for none.
    private var latest: [UInt64]
    /// The number of entries added so far.
    private var count: UInt64 = 0
    private let mask: UInt64

    /// Creates an empty instance with a capacity in bumped keys, rounded up to a power of two. Each
    /// takes 40 bytes; the default takes 2.6 MB.
    package init(raisesMax: Int = 65_536) {
        var capacity = 1
        while capacity < raisesMax { capacity <<= 1 }
        mask = UInt64(capacity) - 1
        latest = Array(repeating: 0, count: capacity)
    }

    /// Adds a change decided by `ruleSet`. The sequences of one key only increase.
    package mutating func note(
        _ keys: InvalidatedKeys, by ruleSet: RuleSet, at sequence: UInt64, acceptedAt: Int64
    ) {
        let hit = Hit(sequence: sequence, acceptedAt: acceptedAt)
        keys.visit { _, _, _, key in note(ruleSet.recentKey(key.hash), hit) }
    }

    /// Adds one key, in the form of ``RuleSet/recentKey(_:)``.
    mutating func note(_ key: UInt64, _ hit: Hit) {
        let raise = Raise(key: key, hit: hit, previous: latest[bucket(key)])
        let place = Int(truncatingIfNeeded: count & mask)
        if place == raises.count { raises.append(raise) } else { raises[place] = raise }
        count += 1
        latest[bucket(key)] = count
    }

    /// Returns the changes that bumped a key, after `floor` and up to `last`: the latest first, at
    /// most `limit`, and without overwritten ones.
    func hits(
        of key: UInt64, after floor: UInt64, upTo last: UInt64 = .max, limit: Int
    ) -> [Hit] {
        let forgotten = count - min(count, mask + 1)
        var hits: [Hit] = []
        var (number, steps) = (latest[bucket(key)], 0)
        while number > forgotten, steps < Self.stepsMax, hits.count < limit {
            let raise = raises[Int(truncatingIfNeeded: (number - 1) & mask)]
            if raise.key == key {
                guard raise.hit.sequence > floor else { break }
                if raise.hit.sequence <= last { hits.append(raise.hit) }
            }
            number = raise.previous
            steps += 1
        }
        return hits
    }

    /// Returns the first change from `sequence` on that bumped a key; `nil` when there is none, or
    /// when the changes since `sequence` are not all stored any more.
    func first(of key: UInt64, from sequence: UInt64) -> Hit? {
        let isForgetting = count > mask + 1
        if isForgetting {
            // The oldest entry of the ring is overwritten next.
            let oldest = raises[Int(truncatingIfNeeded: count & mask)]
            guard oldest.hit.sequence < sequence else { return nil }
        }
        return hits(of: key, after: sequence - min(1, sequence), limit: .max).last
    }

    private func bucket(_ key: UInt64) -> Int { Int(truncatingIfNeeded: key & mask) }
}

extension RuleSet {
    /// Returns the identity of a key among those of all apps: two apps may declare the same rule.
    func recentKey(_ hash: UInt64) -> UInt64 { hash ^ operatorKey }
}
