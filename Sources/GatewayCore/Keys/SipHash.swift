/// A keyed 64-bit hash: SipHash-2-4 (Aumasson and Bernstein, 2012).
///
/// Used for the versions of keys and for sealing cursors. The standard library's `Hasher` has a new
/// seed in every process, so its values can be neither persisted nor replayed.
package struct SipHash: Sendable {
    private let key: (UInt64, UInt64)

    /// Creates a hash with a secret key of 128 bits.
    package init(_ key0: UInt64, _ key1: UInt64) {
        key = (key0, key1)
    }

    /// Creates a hash with the first 16 bytes of a secret; shorter secrets are padded with zeros.
    package init(secret: [UInt8]) {
        func word(_ start: Int) -> UInt64 {
            (0..<8).reduce(0) { word, index in
                let place = start + index
                return word | UInt64(place < secret.count ? secret[place] : 0)
                    << (8 * UInt64(index))
            }
        }
        self.init(word(0), word(8))
    }

    package func callAsFunction(_ bytes: [UInt8]) -> UInt64 {
        // Sound: the buffer is read within the closure that lends it.
        bytes.withUnsafeBytes { hash($0, from: State(key), byteCount: $0.count) }
    }

    /// Returns the state after one word, to continue from for many hashes.
    func absorbing(_ word: UInt64) -> State {
        var state = State(key)
        state.absorb(word)
        return state
    }

    /// Returns the hash of the word that `state` absorbed, followed by `bytes`.
    func hash(_ bytes: UnsafeRawBufferPointer, after state: State) -> UInt64 {
        hash(bytes, from: state, byteCount: bytes.count + 8)
    }

    private func hash(
        _ bytes: UnsafeRawBufferPointer, from state: State, byteCount: Int
    ) -> UInt64 {
        var state = state
        let whole = bytes.count & ~7
        var offset = 0
        while offset < whole {
            state.absorb(
                UInt64(
                    littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
            offset += 8
        }
        var last = UInt64(truncatingIfNeeded: byteCount) << 56
        let rest = bytes.count - whole
        if rest > 0, whole > 0 {
            // Reads the last eight bytes, and shifts out those that were absorbed already.
            let word = UInt64(
                littleEndian: bytes.loadUnaligned(
                    fromByteOffset: bytes.count - 8, as: UInt64.self))
            last |= word >> UInt64(truncatingIfNeeded: 64 - 8 * rest)
        } else {
            for index in whole..<bytes.count {
                last |= UInt64(bytes[index]) << UInt64(truncatingIfNeeded: 8 * (index - whole))
            }
        }
        state.absorb(last)
        return state.finish()
    }

    /// Returns the hash of `text`'s UTF-8 bytes.
    package func callAsFunction(_ text: String) -> UInt64 {
        self(Array(text.utf8))
    }

    /// Returns the hash of whole words, as bytes in little-endian order.
    package func callAsFunction(_ words: UInt64...) -> UInt64 {
        var state = State(key)
        for word in words { state.absorb(word) }
        state.absorb(UInt64(truncatingIfNeeded: words.count * 8) << 56)
        return state.finish()
    }

    /// The state of an unfinished hash.
    struct State: Sendable {
        private var v0: UInt64
        private var v1: UInt64
        private var v2: UInt64
        private var v3: UInt64

        fileprivate init(_ key: (UInt64, UInt64)) {
            v0 = key.0 ^ 0x736f_6d65_7073_6575
            v1 = key.1 ^ 0x646f_7261_6e64_6f6d
            v2 = key.0 ^ 0x6c79_6765_6e65_7261
            v3 = key.1 ^ 0x7465_6462_7974_6573
        }

        fileprivate mutating func absorb(_ word: UInt64) {
            v3 ^= word
            round()
            round()
            v0 ^= word
        }

        fileprivate mutating func finish() -> UInt64 {
            v2 ^= 0xFF
            for _ in 0..<4 { round() }
            return v0 ^ v1 ^ v2 ^ v3
        }

        private mutating func round() {
            v0 &+= v1
            v1 = v1 << 13 | v1 >> 51
            v1 ^= v0
            v0 = v0 << 32 | v0 >> 32
            v2 &+= v3
            v3 = v3 << 16 | v3 >> 48
            v3 ^= v2
            v0 &+= v3
            v3 = v3 << 21 | v3 >> 43
            v3 ^= v0
            v2 &+= v1
            v1 = v1 << 17 | v1 >> 47
            v1 ^= v2
            v2 = v2 << 32 | v2 >> 32
        }
    }
}
