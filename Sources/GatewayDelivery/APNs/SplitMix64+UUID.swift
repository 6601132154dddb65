import WidgetModel

extension SplitMix64 {
    /// Returns a UUID of version 4 (RFC 9562, section 5.4) in lower case, for uses that need
    /// uniqueness only. Asking the system for the randomness would cost more than everything else
    /// about a push.
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
