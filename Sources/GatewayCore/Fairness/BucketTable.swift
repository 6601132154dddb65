/// Token buckets by key, in bounded memory: a request costs O(1) whatever the number of keys.
///
/// A key that was not seen, or whose bucket is full again, needs no memory. If the table is full
/// and none of the buckets it looks at is full, the new key takes over the fullest of them as it
/// is, with the tokens that are missing from it. So no key gets more than its rate by having its
/// own bucket removed, and a peer with more keys than places makes new keys wait as long as his
/// fullest bucket, and no longer.
package struct BucketTable<Key: Hashable & Sendable>: Sendable {
    private struct Slot: Sendable {
        var key: Key
        var bucket: TokenBucket
    }

    /// The rate of each bucket.
    package let rate: TokenRate
    private let slotsMax: Int
    private var slots: [Slot] = []
    private var slotOfKey: [Key: Int] = [:]
    /// Where the search for a bucket to replace begins.
    private var hand = 0

    /// The number of buckets looked at to find one to replace.
    private static var looksMax: Int { 8 }

    /// An empty table of at most `slotsMax` buckets.
    package init(rate: TokenRate, slotsMax: Int) {
        self.rate = rate
        self.slotsMax = max(1, slotsMax)
    }

    /// The number of buckets in the table.
    package var count: Int { slots.count }

    /// Asks for tokens from a key's bucket; see ``TokenBucket/take(_:at:now:)``.
    package mutating func take(
        _ tokens: Int64 = 1, from key: Key, now: Int64
    ) -> TokenBucket.Verdict {
        let slot = slot(of: key, now: now)
        return slots[slot].bucket.take(tokens, at: rate, now: now)
    }

    /// Charges tokens to a key's bucket; see ``TokenBucket/charge(_:at:now:)``.
    package mutating func charge(_ tokens: Int64, to key: Key, now: Int64) {
        let slot = slot(of: key, now: now)
        slots[slot].bucket.charge(tokens, at: rate, now: now)
    }

    /// The whole tokens that a key has left.
    package func remaining(for key: Key, now: Int64) -> Int64 {
        guard let slot = slotOfKey[key] else { return rate.burst }
        return slots[slot].bucket.remaining(at: rate, now: now)
    }

    private mutating func slot(of key: Key, now: Int64) -> Int {
        if let slot = slotOfKey[key] { return slot }
        if let slot = fullSlot(now: now) {
            replace(slot, with: key)
            slots[slot].bucket = TokenBucket(now: now)
            return slot
        }
        if slots.count < slotsMax {
            slotOfKey[key] = slots.count
            slots.append(Slot(key: key, bucket: TokenBucket(now: now)))
            return slots.count - 1
        }
        let slot = fullestSlot(now: now)
        replace(slot, with: key)
        return slot
    }

    /// A bucket under the hand that is full and can be given to another key.
    private mutating func fullSlot(now: Int64) -> Int? {
        for _ in 0..<min(Self.looksMax, slots.count) {
            hand = hand + 1 < slots.count ? hand + 1 : 0
            if slots[hand].bucket.untilFull(at: rate, now: now) == 0 { return hand }
        }
        return nil
    }

    /// The fullest of the buckets that were just looked at.
    private func fullestSlot(now: Int64) -> Int {
        var best = hand
        var least = Int64.max
        for step in 0..<min(Self.looksMax, slots.count) {
            let slot = (hand - step + slots.count) % slots.count
            let wait = slots[slot].bucket.untilFull(at: rate, now: now)
            if wait < least { (best, least) = (slot, wait) }
        }
        return best
    }

    private mutating func replace(_ slot: Int, with key: Key) {
        slotOfKey[slots[slot].key] = nil
        slotOfKey[key] = slot
        slots[slot].key = key
    }
}
