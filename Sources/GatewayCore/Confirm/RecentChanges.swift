/// Which changes raised which keys lately, and when they were accepted: what a client reports is
/// measured by them. Versions would not do, for they know the latest change of a key alone, and
/// while a client rebuilds for one the next is often accepted.
///
/// A ring of raised keys, the oldest forgotten first, in which those of one bucket of keys are
/// chained from the latest on. Noting one costs a constant.
package struct RecentChanges: Sendable {
    /// A change that raised a key.
    package struct Hit: Sendable, Equatable {
        /// Its sequence.
        package let sequence: UInt64
        /// When it was accepted, in milliseconds since 1970.
        package let acceptedAt: Int64
    }

    private struct Raise {
        let key: UInt64
        let hit: Hit
        /// The number of the raise before it in its bucket; 0 for none.
        let previous: UInt64
    }

    /// Raises of one bucket that a search looks at: more than a key has while a client is told of
    /// it, builds and reports.
    private static let stepsMax = 4_096

    /// A ring once it is full; the raise with the number `n`, from 1 on, is at `(n - 1) & mask`.
    private var raises: [Raise] = []
    /// The number of each bucket's latest raise; 0 for none.
    private var latest: [UInt64]
    /// How many were noted.
    private var count: UInt64 = 0
    private let mask: UInt64

    /// Remembers nothing yet, and so many raised keys at most, rounded up to a power of two: 40
    /// bytes for each, 2.6 MB unless told otherwise.
    package init(raisesMax: Int = 65_536) {
        var capacity = 1
        while capacity < raisesMax { capacity <<= 1 }
        mask = UInt64(capacity) - 1
        latest = Array(repeating: 0, count: capacity)
    }

    /// Notes a change decided by `ruleSet`. The sequences of one key only grow.
    package mutating func note(
        _ keys: RaisedKeys, by ruleSet: RuleSet, at sequence: UInt64, acceptedAt: Int64
    ) {
        let hit = Hit(sequence: sequence, acceptedAt: acceptedAt)
        keys.visit { _, _, _, key in note(ruleSet.recentKey(key.hash), hit) }
    }

    /// Notes one key, as ``RuleSet/recentKey(_:)`` names it.
    mutating func note(_ key: UInt64, _ hit: Hit) {
        let raise = Raise(key: key, hit: hit, previous: latest[bucket(key)])
        let place = Int(truncatingIfNeeded: count & mask)
        if place == raises.count { raises.append(raise) } else { raises[place] = raise }
        count += 1
        latest[bucket(key)] = count
    }

    /// The changes that raised a key, of those after `floor` and up to `last`: the latest first, at
    /// most `limit`, and without those that are forgotten.
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

    /// The first change from `sequence` on that raised a key; `nil` when none did, or when what came
    /// after `sequence` is not remembered whole.
    func first(of key: UInt64, from sequence: UInt64) -> Hit? {
        let isForgetting = count > mask + 1
        if isForgetting {
            // The ring's oldest is overwritten next.
            let oldest = raises[Int(truncatingIfNeeded: count & mask)]
            guard oldest.hit.sequence < sequence else { return nil }
        }
        return hits(of: key, after: sequence - min(1, sequence), limit: .max).last
    }

    private func bucket(_ key: UInt64) -> Int { Int(truncatingIfNeeded: key & mask) }
}

extension RuleSet {
    /// The name of a key among those of all apps: a rule is the same in two apps that declare the
    /// same.
    func recentKey(_ hash: UInt64) -> UInt64 { hash ^ operatorKey }
}
