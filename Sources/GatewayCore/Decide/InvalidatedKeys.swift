/// A key that a change bumps.
package struct InvalidatedKey: Sendable {
    /// The slot of the key's rule.
    package let rule: Int
    package let values: BoundValues
}

/// The keys that a change bumps, in the order of its rules.
///
/// All keys are stored in one array, so that a decision costs one allocation, however many keys it
/// has. A ``InvalidatedKey`` is created on access.
package struct InvalidatedKeys: Sendable, Collection {
    /// The start of a key in the array.
    package struct Index: Sendable, Comparable {
        fileprivate let word: Int

        /// Returns whether the left key was added earlier.
        package static func < (left: Self, right: Self) -> Bool { left.word < right.word }
    }

    /// The keys: each is its hash, its ``Head`` and its encoded positions, padded to whole words.
    private var words: [UInt64] = []
    /// The word at which the last key starts.
    private var last = 0
    private var lastBytes = 0
    /// Whether the last key was begun and not ended.
    private var isOpen = false
    package private(set) var count = 0

    /// The properties of a key besides its hash, in one word.
    private struct Head {
        var word: UInt64

        init(slot: Int, isBroad: Bool, byteCount: Int) {
            word =
                UInt64(truncatingIfNeeded: byteCount) << 32
                | UInt64(truncatingIfNeeded: slot) << 1 & 0xFFFF_FFFE | (isBroad ? 1 : 0)
        }

        init(_ word: UInt64) { self.word = word }

        var slot: Int { Int(truncatingIfNeeded: (word & 0xFFFF_FFFF) >> 1) }
        var isBroad: Bool { word & 1 == 1 }
        var byteCount: Int { Int(truncatingIfNeeded: word >> 32) }
        /// The number of words from the start of a key to the next one.
        var stride: Int { 2 + (byteCount + 7) / 8 }
    }

    package var memoryBytes: Int { words.count * 8 }

    /// The start of the first key.
    package var startIndex: Index { Index(word: 0) }
    /// The end of the last key.
    package var endIndex: Index { Index(word: words.count) }

    /// Returns the start of the key after the one at `index`.
    package func index(after index: Index) -> Index {
        Index(word: index.word + Head(words[index.word + 1]).stride)
    }

    package subscript(index: Index) -> InvalidatedKey {
        InvalidatedKey(
            rule: Head(words[index.word + 1]).slot, values: withEncoded(index) { $0.values })
    }

    /// Lends one key to `body`.
    @inline(__always)
    func withEncoded<Result>(_ index: Index, _ body: (EncodedKey) -> Result) -> Result {
        words.withUnsafeBytes { body(Self.key(index.word, $0)) }
    }

    /// Lends every key to `body`, with its index, the slot of its rule, and whether it lacks an
    /// attribute.
    @inline(__always)
    func visit(_ body: (_ index: Index, _ rule: Int, _ isBroad: Bool, EncodedKey) -> Void) {
        words.withUnsafeBytes { raw in
            var word = 0
            while word < words.count {
                let head = Head(words[word + 1])
                body(Index(word: word), head.slot, head.isBroad, Self.key(word, raw))
                word += head.stride
            }
        }
    }

    @inline(__always)
    private static func key(_ word: Int, _ raw: UnsafeRawBufferPointer) -> EncodedKey {
        // Sound: a key ends within the words, which slicing checks, and the lender of `raw`
        // finishes with the key before the words change.
        let head = Head(raw.load(fromByteOffset: (word + 1) * 8, as: UInt64.self))
        let start = (word + 2) * 8
        return EncodedKey(
            hash: raw.load(fromByteOffset: word * 8, as: UInt64.self),
            bytes: UnsafeRawBufferPointer(rebasing: raw[start..<start + head.byteCount]))
    }

    // MARK: Adding a key: `begin`, its positions, `end`

    /// The number of bytes of the positions added to the last begun key.
    var byteCount: Int { lastBytes }

    /// Begins a key, replacing one that was not ended.
    ///
    /// - Parameter prefix: The number of bytes shared with the previous key.
    mutating func begin(prefix: Int = 0) {
        // Reserves the space that most changes need.
        if words.isEmpty { words.reserveCapacity(20) }
        if isOpen {
            words.removeLast(words.count - last - 2 - (prefix + 7) / 8)
        } else {
            let previous = last
            last = words.count
            words.append(0)
            words.append(0)
            for word in 0..<(prefix + 7) / 8 { words.append(words[previous + 2 + word]) }
        }
        isOpen = true
        lastBytes = prefix
    }

    /// Discards a key that was begun and not ended.
    mutating func cancel() {
        guard isOpen else { return }
        words.removeLast(words.count - last)
        isOpen = false
    }

    /// Adds a position without a value.
    mutating func add(tag: UInt8) {
        makeRoom(1)
        let place = (last + 2) * 8 + lastBytes
        words.withUnsafeMutableBytes { $0[place] = tag }
        lastBytes += 1
    }

    /// Adds a position with a value.
    mutating func add(value text: String) {
        var text = text
        text.withUTF8 { utf8 in
            makeRoom(utf8.count + 4)
            let place = (last + 2) * 8 + lastBytes
            // Sound: both buffers are used within the closures that lend them, after a bounds
            // check.
            words.withUnsafeMutableBytes { raw in
                raw.storeBytes(
                    of: BoundValues.valueHead(utf8.count), toByteOffset: place, as: UInt32.self)
                UnsafeMutableRawBufferPointer(rebasing: raw[(place + 4)...])
                    .copyMemory(from: UnsafeRawBufferPointer(utf8))
            }
            lastBytes += utf8.count + 4
        }
    }

    /// Ends a key of `rule`, whose hash may be known already.
    mutating func end(_ rule: Rule, slot: Int, isBroad: Bool, hash known: UInt64? = nil) {
        words[last + 1] = Head(slot: slot, isBroad: isBroad, byteCount: lastBytes).word
        words[last] = known ?? withEncoded(Index(word: last)) { rule.keyHash($0.bytes) }
        count += 1
        isOpen = false
    }

    /// Extends the storage by this many bytes of the last key.
    private mutating func makeRoom(_ byteCount: Int) {
        let end = last + 2 + (lastBytes + byteCount + 7) / 8
        while words.count < end { words.append(0) }
    }
}
