/// A key that refers to existing bytes, so that a lookup copies nothing. Valid only within the
/// closure that lends it.
struct EncodedKey {
    /// The keyed hash of the rule and the positions; see ``BoundValues/hash``.
    let hash: UInt64
    /// The encoded positions; see ``BoundValues/bytes``.
    let bytes: UnsafeRawBufferPointer

    /// A copy of the key with its own bytes.
    var values: BoundValues { BoundValues(bytes: Array(bytes), hash: hash) }
}

extension BoundValues {
    /// Returns the head of a value with this many bytes: the tag, and the count in three bytes.
    static func valueHead(_ count: Int) -> UInt32 {
        UInt32(truncatingIfNeeded: count << 8 | 2).littleEndian
    }

    /// Lends the key to `body`.
    @inline(__always)
    func withEncoded<Result>(_ body: (EncodedKey) -> Result) -> Result {
        // Sound: the buffer is used within the closure that lends it.
        bytes.withUnsafeBytes { body(EncodedKey(hash: hash, bytes: $0)) }
    }
}

/// The encoding of a key's positions in any buffer.
extension RandomAccessCollection<UInt8> where Index == Int {
    /// Returns the end of the position that starts at `index`. It starts with its tag, and a value
    /// contains its length.
    func endOfPosition(at index: Int) -> Int {
        guard self[index] == 2 else { return index + 1 }
        let count = Int(self[index + 1]) | Int(self[index + 2]) << 8 | Int(self[index + 3]) << 16
        return index + 4 + count
    }

    /// Whether some position is missing, as in the key of a change that lacks an attribute.
    var hasMissing: Bool {
        var index = startIndex
        while index < endIndex {
            if self[index] == 0 { return true }
            index = endOfPosition(at: index)
        }
        return false
    }

    /// For each position, whether it is missing.
    var missing: [Bool] {
        var missing: [Bool] = []
        var index = startIndex
        while index < endIndex {
            missing.append(self[index] == 0)
            index = endOfPosition(at: index)
        }
        return missing
    }
}

extension UnsafeRawBufferPointer {
    /// Calls `body` with the index of each position and the decoded position.
    @inline(__always)
    func visitPositions(_ body: (Int, BoundValues.Position) -> Void) {
        var (index, place) = (0, 0)
        while index < count {
            let end = endOfPosition(at: index)
            switch self[index] {
            case 0: body(place, .missing)
            case 1: body(place, .unset)
            case 3: body(place, .nothing)
            default:
                let text = UnsafeRawBufferPointer(rebasing: self[index + 4..<end])
                body(place, .value(String(decoding: text, as: UTF8.self)))
            }
            index = end
            place += 1
        }
    }
}

extension [UInt8] {
    /// Appends the encoding of one position. No encoding is a prefix of another.
    mutating func append(encoded position: BoundValues.Position) {
        switch position {
        case .missing: append(0)
        case .unset: append(1)
        case .nothing: append(3)
        case .value(let text): append(encodedValue: text)
        }
    }

    /// Appends the encoding of ``BoundValues/Position/value(_:)``.
    mutating func append(encodedValue text: String) {
        var text = text
        text.withUTF8 { utf8 in
            // Sound: both buffers are read within the closures that lend them.
            Swift.withUnsafeBytes(of: BoundValues.valueHead(utf8.count)) { append(contentsOf: $0) }
            append(contentsOf: utf8)
        }
    }
}
