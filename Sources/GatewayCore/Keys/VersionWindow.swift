/// The versions of keys: for each of a bounded number of keys, the sequence of the latest change
/// that bumped it.
///
/// When the window is full, the oldest versions are removed and ``floor`` is raised: at or below it
/// nothing is known, and everything counts as stale. Keys are stored as 64-bit keyed hashes; a
/// collision only leads to unnecessary reloads.
package struct VersionWindow: Sendable {
    /// The sequence up to which versions were removed.
    package private(set) var floor: UInt64
    /// The number of stored keys.
    package private(set) var count = 0
    /// The maximum number of stored keys.
    package let keysMax: Int

    private struct Slot {
        var key: UInt64
        /// The version; 0 marks a free slot, because sequences start at 1.
        var sequence: UInt64
    }

    /// A hash table with open addressing and linear probing; its size is a power of two, at most
    /// three quarters full.
    private var slots: [Slot]

    /// Creates a window that knows nothing up to `floor`.
    package init(floor: UInt64, keysMax: Int) {
        self.floor = floor
        self.keysMax = max(16, keysMax)
        slots = Array(repeating: Slot(key: 0, sequence: 0), count: 32)
    }

    /// Returns the latest sequence that bumped `key`; 0 when none above the floor did.
    package func version(of key: UInt64) -> UInt64 {
        let mask = slots.count - 1
        var index = Int(truncatingIfNeeded: key) & mask
        while slots[index].sequence != 0 {
            if slots[index].key == key { return slots[index].sequence }
            index = (index + 1) & mask
        }
        return 0
    }

    /// Prefetches the memory for looking up `key`.
    @inline(__always)
    func prefetch(_ key: UInt64) {
        slots.prefetch(Int(truncatingIfNeeded: key) & (slots.count - 1))
    }

    /// Records that the change at `sequence` bumped `key`. Sequences never decrease.
    package mutating func raise(_ key: UInt64, to sequence: UInt64) {
        if count >= keysMax {
            forgetOldest()
        } else if (count + 1) * 4 > slots.count * 3 {
            rebuild(capacity: slots.count * 2, keepingAbove: 0)
        }
        insert(Slot(key: key, sequence: sequence))
    }

    /// Removes everything up to `sequence`, as after a gap in the log.
    package mutating func raiseFloor(to sequence: UInt64) {
        guard sequence > floor else { return }
        floor = sequence
        rebuild(capacity: slots.count, keepingAbove: sequence)
    }

    private mutating func insert(_ slot: Slot) {
        let mask = slots.count - 1
        var index = Int(truncatingIfNeeded: slot.key) & mask
        while slots[index].sequence != 0 {
            if slots[index].key == slot.key {
                slots[index].sequence = max(slots[index].sequence, slot.sequence)
                return
            }
            index = (index + 1) & mask
        }
        slots[index] = slot
        count += 1
    }

    /// Removes the oldest quarter at once, so that a full window costs a constant per change
    /// instead of a scan.
    private mutating func forgetOldest() {
        let sequences = slots.map(\.sequence).filter { $0 != 0 }.sorted()
        // Space must be freed even if that sequence equals the floor, as when one change bumps more
        // keys than fit.
        floor = max(floor, sequences[sequences.count / 4])
        rebuild(capacity: slots.count, keepingAbove: floor)
    }

    private mutating func rebuild(capacity: Int, keepingAbove sequence: UInt64) {
        let old = slots
        slots = Array(repeating: Slot(key: 0, sequence: 0), count: capacity)
        count = 0
        for slot in old where slot.sequence > sequence { insert(slot) }
    }
}
