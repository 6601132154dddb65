/// Token buckets by key, in bounded memory. A request takes O(1) time, whatever the number of keys.
///
/// A key that is new, or whose bucket is full again, needs no memory. If the table is full and none
/// of the examined buckets is full, the new key takes over the fullest of them unchanged, including
/// its missing tokens. Therefore no key gets more than its rate by having its own bucket removed,
/// and a peer with more keys than slots delays new keys only until its fullest bucket refills.
///
/// Inlinable as a whole, and therefore public: other modules use it for every request with their
/// own key and element types, and unspecialized code would look up generic metadata at each step.
public struct BucketTable<Key: Hashable & Sendable>: Sendable {
    @usableFromInline struct Slot: Sendable {
        @usableFromInline var key: Key
        @usableFromInline var bucket: TokenBucket

        @inlinable init(key: Key, bucket: TokenBucket) {
            self.key = key
            self.bucket = bucket
        }
    }

    /// The rate of each bucket.
    public let rate: TokenRate
    @usableFromInline let slotsMax: Int
    @usableFromInline var slots: [Slot] = []
    @usableFromInline var slotOfKey: [Key: Int] = [:]
    /// The slot at which the search for a bucket to replace begins.
    @usableFromInline var hand = 0

    /// The number of buckets to examine when searching for one to replace.
    @inlinable static var looksMax: Int { 8 }

    /// Creates an empty table of at most `slotsMax` buckets.
    @inlinable public init(rate: TokenRate, slotsMax: Int) {
        self.rate = rate
        self.slotsMax = max(1, slotsMax)
    }

    /// The number of buckets in the table.
    @inlinable public var count: Int { slots.count }

    /// Requests tokens from a key's bucket; see ``TokenBucket/take(_:at:now:)``.
    @inlinable public mutating func take(
        _ tokens: Int64 = 1, from key: Key, now: Int64
    ) -> TokenBucket.Verdict {
        let slot = slot(of: key, now: now)
        return slots[slot].bucket.take(tokens, at: rate, now: now)
    }

    /// Charges tokens to a key's bucket; see ``TokenBucket/charge(_:at:now:)``.
    @inlinable public mutating func charge(_ tokens: Int64, to key: Key, now: Int64) {
        let slot = slot(of: key, now: now)
        slots[slot].bucket.charge(tokens, at: rate, now: now)
    }

    /// Returns the whole tokens left for a key.
    @inlinable public func remaining(for key: Key, now: Int64) -> Int64 {
        guard let slot = slotOfKey[key] else { return rate.burst }
        return slots[slot].bucket.remaining(at: rate, now: now)
    }

    @inlinable mutating func slot(of key: Key, now: Int64) -> Int {
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

    /// Returns a full bucket near the hand, which can be given to another key; `nil` when none is
    /// full.
    @inlinable mutating func fullSlot(now: Int64) -> Int? {
        for _ in 0..<min(Self.looksMax, slots.count) {
            hand = hand + 1 < slots.count ? hand + 1 : 0
            if slots[hand].bucket.untilFull(at: rate, now: now) == 0 { return hand }
        }
        return nil
    }

    /// Returns the fullest of the buckets examined last.
    @inlinable func fullestSlot(now: Int64) -> Int {
        var best = hand
        var least = Int64.max
        for step in 0..<min(Self.looksMax, slots.count) {
            let slot = (hand - step + slots.count) % slots.count
            let wait = slots[slot].bucket.untilFull(at: rate, now: now)
            if wait < least { (best, least) = (slot, wait) }
        }
        return best
    }

    @inlinable mutating func replace(_ slot: Int, with key: Key) {
        slotOfKey[slots[slot].key] = nil
        slotOfKey[key] = slot
        slots[slot].key = key
    }
}
