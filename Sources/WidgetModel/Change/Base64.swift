extension [UInt8] {
    /// Decodes standard base64 with padding (RFC 4648 section 4); `nil` for anything else.
    ///
    /// Foundation's decoder would do, but the vocabulary stays free of Foundation so that a
    /// widget extension can link it at no cost.
    init?(base64 text: String) {
        let characters = Array(text.utf8)
        guard characters.count % 4 == 0 else { return nil }
        self.init()
        reserveCapacity(characters.count / 4 * 3)
        let body = characters.prefix { $0 != UInt8(ascii: "=") }
        let padding = characters.count - body.count
        guard padding <= 2, characters.suffix(padding).allSatisfy({ $0 == UInt8(ascii: "=") })
        else { return nil }
        var accumulator: UInt32 = 0
        var bits = 0
        for character in body {
            let digit: UInt8
            switch character {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): digit = character - UInt8(ascii: "A")
            case UInt8(ascii: "a")...UInt8(ascii: "z"): digit = character - UInt8(ascii: "a") + 26
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = character - UInt8(ascii: "0") + 52
            case UInt8(ascii: "+"): digit = 62
            case UInt8(ascii: "/"): digit = 63
            default: return nil
            }
            accumulator = (accumulator << 6 | UInt32(digit)) & 0xFFFFFF
            bits += 6
            if bits >= 8 {
                bits -= 8
                append(UInt8(truncatingIfNeeded: accumulator >> UInt32(bits)))
            }
        }
        guard accumulator & (1 << UInt32(bits) - 1) == 0 else { return nil }
    }
}
