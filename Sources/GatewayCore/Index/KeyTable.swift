/// Maps the real values of keys to elements: a hash table with open addressing and linear probing
/// over their 64-bit hashes.
///
/// A key is identified by a small number until it is removed. The values of all keys are stored in
/// one array of bytes, so that a key needs no heap object; freed space is reused for keys of about
/// the same length.
struct KeyTable<Element: Sendable>: Sendable {
    private struct Key {
        var hash: UInt64
        /// The start of its values, in units of eight bytes; ``free`` marks an unused number.
        var start: UInt32
        var byteCount: UInt32
        var element: Element

        static var free: UInt32 { .max }
    }

    /// The upper half of a key's hash, then its number plus one; 0 for a free slot. The count is a
    /// power of two, and at most three quarters are in use.
    private var slots: [UInt64] = []
    private var keys: [Key] = []
    private var freeKeys: [UInt32] = []
    private var bytes: [UInt8] = []
    /// The starts of freed values, by their length in units.
    private var freeBytes: [Int: [UInt32]] = [:]

    var count: Int { keys.count - freeKeys.count }

    /// The numbers of all keys, in an order that depends only on the preceding operations.
    var numbers: some Sequence<Int> {
        keys.indices.lazy.filter { keys[$0].start != Key.free }
    }

    /// Whether there are no keys.
    var isEmpty: Bool { count == 0 }

    func isKey(_ number: Int) -> Bool {
        number < keys.count && keys[number].start != Key.free
    }

    func hash(of number: Int) -> UInt64 { keys[number].hash }

    subscript(number: Int) -> Element {
        _read { yield keys[number].element }
        _modify { yield &keys[number].element }
    }

    /// Returns the encoded values of a key by its number.
    func values(of number: Int) -> ArraySlice<UInt8> {
        let start = Int(keys[number].start) * 8
        return bytes[start..<start + Int(keys[number].byteCount)]
    }

    /// Returns the number of the key with these values; equal hashes are confirmed by the values.
    func find(_ values: BoundValues) -> Int? {
        values.withEncoded { find($0) }
    }

    /// Returns the number of the key with these values whose element satisfies `matches`.
    @inline(__always)
    func find(_ key: EncodedKey, where matches: (Element) -> Bool = { _ in true }) -> Int? {
        // Sound: the buffers are read within the closures that lend them. The mask keeps every
        // index within the slots, and a slot contains the number of a key.
        slots.withUnsafeBufferPointer { slots in
            guard !slots.isEmpty else { return nil }
            let mask = slots.count &- 1
            var place = Int(truncatingIfNeeded: key.hash) & mask
            while slots[place] != 0 {
                if slots[place] >> 32 == key.hash >> 32 {
                    let number = Self.number(in: slots[place])
                    if isKey(number, key), matches(keys[number].element) { return number }
                }
                place = (place &+ 1) & mask
            }
            return nil
        }
    }

    /// Prefetches the memory where the search for a hash starts; mutating, so that the table is not
    /// copied.
    @inline(__always)
    mutating func prefetch(_ hash: UInt64) {
        slots.prefetch(Int(truncatingIfNeeded: hash) & (slots.count - 1))
    }

    /// Adds a new key; returns its number.
    mutating func add(_ values: BoundValues, _ element: Element) -> Int {
        values.withEncoded { add($0, element) }
    }

    /// Adds a new key; returns its number.
    mutating func add(_ values: EncodedKey, _ element: Element) -> Int {
        if (count + 1) * 4 > slots.count * 3 { grow() }
        let key = Key(
            hash: values.hash, start: store(values.bytes), byteCount: UInt32(values.bytes.count),
            element: element)
        let number: Int
        if let free = freeKeys.popLast() {
            number = Int(free)
            keys[number] = key
        } else {
            number = keys.count
            keys.append(key)
        }
        enter(number)
        return number
    }

    mutating func remove(_ number: Int, leaving empty: Element) {
        if count == 1 {
            self = KeyTable()
            return
        }
        let mask = slots.count - 1
        var hole = Int(truncatingIfNeeded: keys[number].hash) & mask
        while Self.number(in: slots[hole]) != number { hole = (hole + 1) & mask }
        // Entries displaced past the hole move back, so that no probe ends before its key.
        var next = (hole + 1) & mask
        while slots[next] != 0 {
            let home = Int(truncatingIfNeeded: keys[Self.number(in: slots[next])].hash)
            if (next - home) & mask >= (next - hole) & mask {
                slots[hole] = slots[next]
                hole = next
            }
            next = (next + 1) & mask
        }
        slots[hole] = 0
        let units = Self.units(Int(keys[number].byteCount))
        if units > 0 { freeBytes[units, default: []].append(keys[number].start) }
        keys[number] = Key(hash: 0, start: Key.free, byteCount: 0, element: empty)
        freeKeys.append(UInt32(number))
    }

    private static func number(in slot: UInt64) -> Int {
        Int(slot & 0xFFFF_FFFF) - 1
    }

    private static func units(_ byteCount: Int) -> Int { (byteCount + 7) / 8 }

    @inline(__always)
    private func isKey(_ number: Int, _ key: EncodedKey) -> Bool {
        keys.withUnsafeBufferPointer { keys in
            // Sound: the buffer is read within the closure that lends it, after a bounds check.
            guard number < keys.count, keys[number].hash == key.hash,
                Int(keys[number].byteCount) == key.bytes.count
            else { return false }
            return bytes.hasBytes(key.bytes, at: Int(keys[number].start) * 8)
        }
    }

    /// Enters a key at the first free slot from the one that its hash selects.
    private mutating func enter(_ number: Int) {
        let mask = slots.count - 1
        var place = Int(truncatingIfNeeded: keys[number].hash) & mask
        while slots[place] != 0 { place = (place + 1) & mask }
        slots[place] = (keys[number].hash & ~0xFFFF_FFFF) | UInt64(UInt32(number + 1))
    }

    private mutating func grow() {
        slots = Array(repeating: 0, count: max(4, slots.count * 2))
        for number in keys.indices where keys[number].start != Key.free { enter(number) }
    }

    private mutating func store(_ values: UnsafeRawBufferPointer) -> UInt32 {
        let units = Self.units(values.count)
        if let start = freeBytes[units]?.popLast() {
            let first = Int(start) * 8
            bytes.replaceSubrange(first..<first + values.count, with: values)
            return start
        }
        let start = bytes.count / 8
        bytes.append(contentsOf: values)
        bytes.append(contentsOf: repeatElement(0, count: units * 8 - values.count))
        return UInt32(start)
    }
}

extension [UInt8] {
    /// Returns whether `other` is contained at `start`.
    @inline(__always)
    fileprivate func hasBytes(_ other: UnsafeRawBufferPointer, at start: Int) -> Bool {
        withUnsafeBytes { own in
            // Sound: the pointers are read within the closures that lend them, and never beyond
            // `own.count` and `other.count`.
            guard start + other.count <= own.count else { return false }
            var place = 0
            while place + 8 <= other.count {
                let word = other.loadUnaligned(fromByteOffset: place, as: UInt64.self)
                let mine = own.loadUnaligned(fromByteOffset: start + place, as: UInt64.self)
                guard word == mine else { return false }
                place += 8
            }
            while place < other.count {
                guard other[place] == own[start + place] else { return false }
                place += 1
            }
            return true
        }
    }
}
