/// Values by names, found at less cost than in a dictionary of texts, whose hash withstands peers
/// that choose what is in it: here only catalogs and configurations do.
///
/// Texts are the same as they are by `==`.
package struct NameTable<Value: Sendable>: Sendable {
    private var entries: [(name: String, value: Value)] = []
    /// For names in ASCII the upper half of the hash, then the entry's place plus one; 0 for a free
    /// slot. A power of two of them, at most half in use.
    private var slots: [UInt64] = []
    /// The places of all names, for those that are not in ASCII: `==` takes different bytes for the
    /// same text.
    private var places: [String: Int] = [:]
    private var isASCII = true

    /// How many names there are.
    var count: Int { entries.count }

    /// The value of a name; `nil` when it has none.
    package subscript(name: String) -> Value? {
        place(of: name).map { entries[$0].value }
    }

    /// Gives a name its value, in place of any that it had.
    mutating func set(_ name: String, _ value: Value) {
        if let place = places[name] {
            entries[place].value = value
            return
        }
        let place = entries.count
        entries.append((name, value))
        places[name] = place
        if entries.count * 2 > slots.count {
            slots = Array(repeating: 0, count: max(8, slots.count * 2))
            for place in entries.indices { enter(place) }
        } else {
            enter(place)
        }
    }

    /// Takes a name out, which costs as much as putting all others in.
    mutating func remove(_ name: String) {
        guard places[name] != nil else { return }
        let kept = entries.filter { $0.name != name }
        self = NameTable()
        for entry in kept { set(entry.name, entry.value) }
    }

    private func place(of name: String) -> Int? {
        // Sound: the buffer is read within the closure that lends it.
        let hash = name.utf8.withContiguousStorageIfAvailable(Self.hash).flatMap { $0 }
        guard let hash else { return places[name] }
        guard !slots.isEmpty else { return nil }
        let mask = slots.count - 1
        var slot = Int(truncatingIfNeeded: hash) & mask
        while slots[slot] != 0 {
            if slots[slot] >> 32 == hash >> 32 {
                let place = Int(slots[slot] & 0xFFFF_FFFF) - 1
                if entries[place].name == name { return place }
            }
            slot = (slot + 1) & mask
        }
        return isASCII ? nil : places[name]
    }

    private mutating func enter(_ place: Int) {
        var name = entries[place].name
        // Sound: the buffer is read within the closure that lends it.
        guard let hash = name.withUTF8(Self.hash) else {
            isASCII = false
            return
        }
        let mask = slots.count - 1
        var slot = Int(truncatingIfNeeded: hash) & mask
        while slots[slot] != 0 { slot = (slot + 1) & mask }
        slots[slot] = hash & ~0xFFFF_FFFF | UInt64(UInt32(truncatingIfNeeded: place + 1))
    }

    /// A hash of the bytes; `nil` when they are not ASCII.
    private static func hash(_ bytes: UnsafeBufferPointer<UInt8>) -> UInt64? {
        let raw = UnsafeRawBufferPointer(bytes)
        var hash = UInt64(truncatingIfNeeded: bytes.count)
        var offset = 0
        while offset < bytes.count {
            var word: UInt64 = 0
            if bytes.count - offset >= 8 {
                word = raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            } else {
                for index in offset..<bytes.count { word = word << 8 | UInt64(bytes[index]) }
            }
            guard word & 0x8080_8080_8080_8080 == 0 else { return nil }
            let product = (hash ^ word).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
            hash = product.high ^ product.low
            offset += 8
        }
        return hash
    }
}
