/// Numbers that nobody has to be unable to guess: jitter, and the ids of pushes, which only have to
/// differ. Asking the system for each would cost more than all else about a push.
///
/// SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
struct APNsRandom: RandomNumberGenerator {
    private var state: UInt64

    /// - Parameter seed: From the system.
    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A UUID of version 4 (RFC 9562, section 5.4) in lower case.
    mutating func uuid() -> String {
        let high = next() & 0xFFFF_FFFF_FFFF_0FFF | 0x4000
        let low = next() & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
        return String(unsafeUninitializedCapacity: 36) { text in
            var place = 0
            for digit in 0..<32 {
                if digit == 8 || digit == 12 || digit == 16 || digit == 20 {
                    text[place] = UInt8(ascii: "-")
                    place += 1
                }
                let half = digit < 16 ? high : low
                let value = UInt8(truncatingIfNeeded: half >> UInt64(60 - 4 * (digit & 15))) & 0xF
                text[place] = value < 10 ? 0x30 + value : 0x57 + value
                place += 1
            }
            return place
        }
    }
}
