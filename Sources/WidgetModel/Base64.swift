/// An encoding of bytes as text (RFC 4648).
///
/// Foundation's would do, but the vocabulary stays free of Foundation so that a widget extension can
/// link it at no cost.
///
/// Strict when it decodes: whitespace, letters of another alphabet, padding where there is none and
/// trailing bits that are not zero are refused, so that every byte string has exactly one spelling.
package struct Base64: Sendable {
    /// Base64 with padding (RFC 4648 section 4).
    package static let standard = Base64(lastLetters: "+/", isPadded: true)
    /// Base64url without padding (RFC 4648 section 5, RFC 7515 section 2).
    package static let url = Base64(lastLetters: "-_", isPadded: false)

    private static let padding = UInt8(ascii: "=")

    private let letters: [UInt8]
    /// The value of each letter; 0xFF marks what is none.
    private let values: [UInt8]
    private let isPadded: Bool

    private init(lastLetters: String, isPadded: Bool) {
        let first = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
        letters = Array((first + lastLetters).utf8)
        var values = [UInt8](repeating: 0xFF, count: 256)
        for (value, letter) in letters.enumerated() { values[Int(letter)] = UInt8(value) }
        self.values = values
        self.isPadded = isPadded
    }

    /// Returns the number of characters that `count` bytes become.
    package func encodedCount(_ count: Int) -> Int {
        isPadded ? (count + 2) / 3 * 4 : count / 3 * 4 + (count % 3 == 0 ? 0 : count % 3 + 1)
    }

    /// Appends the characters for `bytes` to `text`.
    package func append(_ bytes: [UInt8], to text: inout [UInt8]) {
        text.append(contentsOf: encode(bytes))
    }

    /// Returns the characters for `bytes`, in ASCII.
    package func encode(_ bytes: [UInt8]) -> [UInt8] {
        letters.withUnsafeBufferPointer { letters in
            let count = encodedCount(bytes.count)
            return [UInt8](unsafeUninitializedCapacity: count) { text, written in
                // Sound: a letter is written for every six bits, which with the padding is what was
                // counted.
                var window: UInt32 = 0
                var bits: UInt32 = 0
                for byte in bytes {
                    window = window << 8 | UInt32(byte)
                    bits += 8
                    while bits >= 6 {
                        bits -= 6
                        text.initializeElement(
                            at: written, to: letters[Int(window >> bits & 0x3F)])
                        written += 1
                    }
                }
                if bits > 0 {
                    text.initializeElement(
                        at: written, to: letters[Int(window << (6 - bits) & 0x3F)])
                    written += 1
                }
                while written < count {
                    text.initializeElement(at: written, to: Self.padding)
                    written += 1
                }
            }
        }
    }

    package func string(_ bytes: [UInt8]) -> String {
        String(decoding: encode(bytes), as: UTF8.self)
    }

    /// Returns the bytes spelled by `text`; `nil` unless it is their one canonical spelling.
    package func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        if let bytes = text.withContiguousStorageIfAvailable({ decode(letters: $0) }) {
            return bytes
        }
        return Array(text).withUnsafeBufferPointer { decode(letters: $0) }
    }

    /// Returns the bytes spelled by `text`; `nil` unless it is their one canonical spelling.
    package func decode(_ text: String) -> [UInt8]? {
        decode(text.utf8)
    }

    private func decode(letters text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        var letters = text
        if isPadded {
            guard letters.count % 4 == 0 else { return nil }
            for _ in 0..<2 where letters.last == Self.padding {
                letters = UnsafeBufferPointer(rebasing: letters.dropLast())
            }
        }
        guard letters.count % 4 != 1 else { return nil }
        var isCanonical = true
        let bytes = values.withUnsafeBufferPointer { values in
            [UInt8](unsafeUninitializedCapacity: letters.count / 4 * 3 + 2) { bytes, written in
                // Sound: four letters make three bytes, and a rest of two or three one or two.
                var window: UInt32 = 0
                var bits: UInt32 = 0
                for letter in letters {
                    let value = values[Int(letter)]
                    if value == 0xFF {
                        isCanonical = false
                        return
                    }
                    window = window << 6 | UInt32(value)
                    bits += 6
                    if bits >= 8 {
                        bits -= 8
                        bytes.initializeElement(
                            at: written, to: UInt8(truncatingIfNeeded: window >> bits))
                        written += 1
                    }
                }
                isCanonical = window & (1 << bits - 1) == 0
            }
        }
        return isCanonical ? bytes : nil
    }
}
