import Foundation

/// Turns the name of an event into the 64 bits it is indexed by: SipHash-2-4 (Aumasson and
/// Bernstein, 2012) under a key of this database.
///
/// Event names are long and arrive in random order. Indexed as they are, each new row would dirty
/// a page of an index larger than the log itself; a number keeps that index small. Rows found by
/// it are compared in full, so that a collision costs a comparison and nothing else, and without
/// the key nobody can make many names collide on purpose.
struct EventFingerprint: Sendable {
    /// Length of a key in bytes.
    static let keyBytes = 16

    private let k0: UInt64
    private let k1: UInt64

    /// - Throws: `StoreError.corrupt` if the key is not `keyBytes` long.
    init(key: Data) throws {
        guard key.count == Self.keyBytes else {
            throw StoreError.corrupt(reason: "the key of the event index has a wrong length")
        }
        k0 = Self.word(key.prefix(8))
        k1 = Self.word(key.suffix(8))
    }

    /// The number that the event is indexed by.
    func callAsFunction(app: String, source: String, id: String) -> Int64 {
        var name = app + "\0" + source + "\0" + id
        return name.withUTF8 { Int64(bitPattern: hash(UnsafeRawBufferPointer($0))) }
    }

    /// SipHash-2-4 of some bytes.
    func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        var state = State(k0: k0, k1: k1)
        let whole = bytes.count / 8 * 8
        for offset in stride(from: 0, to: whole, by: 8) {
            let word = bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            state.absorb(UInt64(littleEndian: word))
        }
        var last = UInt64(truncatingIfNeeded: bytes.count) << 56
        for offset in whole..<bytes.count {
            last |= UInt64(bytes[offset]) << UInt64(8 * (offset - whole))
        }
        state.absorb(last)
        return state.finish()
    }

    /// Eight bytes as a little-endian number.
    private static func word(_ bytes: Data) -> UInt64 {
        bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    private struct State {
        var v0: UInt64
        var v1: UInt64
        var v2: UInt64
        var v3: UInt64

        init(k0: UInt64, k1: UInt64) {
            v0 = k0 ^ 0x736f_6d65_7073_6575
            v1 = k1 ^ 0x646f_7261_6e64_6f6d
            v2 = k0 ^ 0x6c79_6765_6e65_7261
            v3 = k1 ^ 0x7465_6462_7974_6573
        }

        mutating func absorb(_ word: UInt64) {
            v3 ^= word
            round()
            round()
            v0 ^= word
        }

        mutating func finish() -> UInt64 {
            v2 ^= 0xff
            for _ in 0..<4 { round() }
            return v0 ^ v1 ^ v2 ^ v3
        }

        private mutating func round() {
            v0 &+= v1
            v1 = Self.rotate(v1, 13) ^ v0
            v0 = Self.rotate(v0, 32)
            v2 &+= v3
            v3 = Self.rotate(v3, 16) ^ v2
            v0 &+= v3
            v3 = Self.rotate(v3, 21) ^ v0
            v2 &+= v1
            v1 = Self.rotate(v1, 17) ^ v2
            v2 = Self.rotate(v2, 32)
        }

        private static func rotate(_ value: UInt64, _ bits: UInt64) -> UInt64 {
            value << bits | value >> (64 - bits)
        }
    }
}
