/// The versions of keys in a hash table with open addressing and linear probing: for each key the
/// sequence of the latest change that bumped it.
///
/// Keys are keyed hashes of 64 bits, so their bytes need no further mixing.
struct VersionTable: Sendable {
    /// The number of stored keys.
    private(set) var count = 0
    private var slots: [Slot]

    /// A key with its version. A slot with sequence 0 is free, because sequences start at 1.
    private struct Slot: Sendable {
        /// The keyed hash of the key.
        let key: UInt64
        /// The sequence that bumped it last.
        var sequence: UInt64
    }

    private static let free = Slot(key: 0, sequence: 0)

    /// The number of slots of a table that has stored nothing.
    private static let slotsMin = 32

    init() {
        slots = Array(repeating: Self.free, count: Self.slotsMin)
    }

    /// Creates a table that stores `keys` keys without growing, four in five slots.
    init(capacity keys: Int) {
        slots = Array(repeating: Self.free, count: keys + keys / 4 + 1)
    }

    /// Returns the latest sequence that bumped `key`; 0 for a key that is not stored.
    func version(of key: UInt64) -> UInt64 {
        // Sound: the buffer is read within the closure that lends it, at indices below its count.
        // Without it each look-up would count a reference that all event loops share.
        slots.withUnsafeBufferPointer { slots in
            var index = Self.start(of: key, slots.count)
            while slots[index].sequence != 0 {
                if slots[index].key == key { return slots[index].sequence }
                index = index + 1 == slots.count ? 0 : index + 1
            }
            return 0
        }
    }

    /// Prefetches the memory for looking up `key`.
    @inline(__always)
    func prefetch(_ key: UInt64) { slots.prefetch(Self.start(of: key, slots.count)) }

    /// Records that the change at `sequence` bumped `key`; a lower sequence than the stored one has
    /// no effect.
    mutating func raise(_ key: UInt64, to sequence: UInt64) {
        if (count + 1) * 5 > slots.count * 4 { grow() }
        var index = Self.start(of: key, slots.count)
        while slots[index].sequence != 0 {
            if slots[index].key == key {
                slots[index].sequence = max(slots[index].sequence, sequence)
                return
            }
            index = index + 1 == slots.count ? 0 : index + 1
        }
        slots[index] = Slot(key: key, sequence: sequence)
        count += 1
    }

    /// Removes the versions up to `sequence`, and the memory that they took.
    mutating func removeAll(upTo sequence: UInt64) {
        let kept = slots.reduce(0) { $1.sequence > sequence ? $0 + 1 : $0 }
        guard kept < count else { return }
        let old = slots
        self = kept == 0 ? Self() : Self(capacity: max(kept, Self.slotsMin))
        for slot in old where slot.sequence > sequence { raise(slot.key, to: slot.sequence) }
    }

    /// Calls `body` with each key and its version, in no particular order.
    func visit(_ body: (_ key: UInt64, _ sequence: UInt64) -> Void) {
        for slot in slots where slot.sequence != 0 { body(slot.key, slot.sequence) }
    }

    /// Returns the sequence that only the `newest` latest keys lie above, or fewer if several have
    /// the same; 0 if there are no more keys.
    func sequence(below newest: Int) -> UInt64 {
        guard count > newest else { return 0 }
        let sequences = slots.lazy.map(\.sequence).filter { $0 != 0 }.sorted()
        return sequences[count - newest - 1]
    }

    private mutating func grow() {
        let old = slots
        slots = Array(repeating: Self.free, count: old.count * 2)
        count = 0
        for slot in old where slot.sequence != 0 { raise(slot.key, to: slot.sequence) }
    }

    /// The first slot in which a key may be stored.
    @inline(__always)
    private static func start(of key: UInt64, _ slots: Int) -> Int {
        Int(truncatingIfNeeded: key.byteSwapped.multipliedFullWidth(by: UInt64(slots)).high)
    }
}
