/// Version of a key: the sequence of the latest change that hit it, for a bounded number of keys.
///
/// What does not fit is forgotten oldest first, and ``floor`` says up to where: below it nothing is
/// known, and everything counts as stale. Keys are kept as 64-bit keyed hashes; a collision only
/// reloads too much.
package struct VersionWindow: Sendable {
    /// Versions at or below this were forgotten.
    package private(set) var floor: UInt64
    /// How many keys are remembered.
    package private(set) var count = 0
    /// How many keys are remembered at most.
    package let keysMax: Int

    private struct Slot {
        var key: UInt64
        /// 0 marks a free slot; sequences start at 1.
        var sequence: UInt64
    }

    /// Open addressing with linear probing over a power of two, at most three quarters full.
    private var slots: [Slot]

    /// A window that remembers nothing up to `floor`.
    package init(floor: UInt64, keysMax: Int) {
        self.floor = floor
        self.keysMax = max(16, keysMax)
        slots = Array(repeating: Slot(key: 0, sequence: 0), count: 32)
    }

    /// The latest sequence that hit `key`; 0 when none above the floor did.
    package func version(of key: UInt64) -> UInt64 {
        let mask = slots.count - 1
        var index = Int(truncatingIfNeeded: key) & mask
        while slots[index].sequence != 0 {
            if slots[index].key == key { return slots[index].sequence }
            index = (index + 1) & mask
        }
        return 0
    }

    /// Asks for the memory in which `key` is looked for.
    @inline(__always)
    func prefetch(_ key: UInt64) {
        slots.prefetch(Int(truncatingIfNeeded: key) & (slots.count - 1))
    }

    /// Notes that the change at `sequence` hit `key`. Sequences never go down.
    package mutating func raise(_ key: UInt64, to sequence: UInt64) {
        if count >= keysMax {
            forgetOldest()
        } else if (count + 1) * 4 > slots.count * 3 {
            rebuild(capacity: slots.count * 2, keepingAbove: 0)
        }
        insert(Slot(key: key, sequence: sequence))
    }

    /// Forgets everything up to `sequence`, as after a gap in the log.
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

    /// Forgets the oldest quarter at once: a full window costs a constant per change, not a scan.
    private mutating func forgetOldest() {
        let sequences = slots.map(\.sequence).filter { $0 != 0 }.sorted()
        // Room is made even where that sequence is the floor already, as when one change raises
        // more keys than are remembered.
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
