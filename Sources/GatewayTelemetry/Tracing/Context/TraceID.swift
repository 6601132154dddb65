/// The id of a trace: 16 bytes, not all zero (W3C Trace Context, section 3.2.2.3).
package struct TraceID: Sendable, Hashable {
    /// The first eight bytes.
    package let high: UInt64
    /// The last eight bytes; at least seven of them are random in locally created ids.
    package let low: UInt64

    /// Creates an id; `nil` if it is all zero, which is invalid.
    package init?(high: UInt64, low: UInt64) {
        guard high | low != 0 else { return nil }
        self.high = high
        self.low = low
    }

    package static func random(using generator: inout some RandomNumberGenerator) -> TraceID {
        while true {
            if let id = TraceID(high: generator.next(), low: generator.next()) { return id }
        }
    }

    /// The id as 32 lower-case digits.
    package var hexadecimal: String { Hexadecimal.text(high) + Hexadecimal.text(low) }
}

/// The id of a span within its trace: eight bytes, not all zero (W3C Trace Context, section
/// 3.2.2.4).
package struct SpanID: Sendable, Hashable {
    /// The bytes as a number.
    package let value: UInt64

    /// Creates an id; `nil` if it is zero, which is invalid.
    package init?(_ value: UInt64) {
        guard value != 0 else { return nil }
        self.value = value
    }

    package static func random(using generator: inout some RandomNumberGenerator) -> SpanID {
        while true {
            if let id = SpanID(generator.next()) { return id }
        }
    }

    package static func random() -> SpanID {
        var generator = SystemRandomNumberGenerator()
        return random(using: &generator)
    }

    /// The id as 16 lower-case digits.
    package var hexadecimal: String { Hexadecimal.text(value) }
}

/// Hexadecimal digits in trace contexts, which are in lower case.
enum Hexadecimal {
    /// Returns sixteen digits.
    static func text(_ value: UInt64) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }

    /// Parses at most sixteen digits; `nil` if one is invalid or in upper case.
    static func value(_ digits: ArraySlice<UInt8>) -> UInt64? {
        guard digits.count <= 16 else { return nil }
        var value: UInt64 = 0
        for byte in digits {
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            default: return nil
            }
            value = value << 4 | UInt64(digit)
        }
        return value
    }
}
