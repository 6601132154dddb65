/// Base64url without padding (RFC 4648 section 5, RFC 7515 section 2).
///
/// Strict when it decodes: padding, whitespace, letters of the ordinary alphabet and trailing bits
/// that are not zero are refused, so that every byte string has exactly one spelling.
package enum Base64URL {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// Value of each letter; 0xFF marks what is none.
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 0xFF, count: 256)
        for (value, letter) in alphabet.enumerated() { values[Int(letter)] = UInt8(value) }
        return values
    }()

    /// How many letters `count` bytes become.
    package static func encodedCount(_ count: Int) -> Int {
        count / 3 * 4 + (count % 3 == 0 ? 0 : count % 3 + 1)
    }

    /// Appends the letters of `bytes` to `text`.
    package static func append(_ bytes: [UInt8], to text: inout [UInt8]) {
        text.append(contentsOf: encode(bytes))
    }

    /// The letters of `bytes`, in ASCII.
    package static func encode(_ bytes: [UInt8]) -> [UInt8] {
        alphabet.withUnsafeBufferPointer { letters in
            let count = encodedCount(bytes.count)
            return [UInt8](unsafeUninitializedCapacity: count) { text, written in
                // Sound: a letter is written for every six bits, which is what was counted.
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
            }
        }
    }

    /// The letters of `bytes`.
    package static func string(_ bytes: [UInt8]) -> String {
        String(decoding: encode(bytes), as: UTF8.self)
    }

    /// The bytes spelled by `text`; `nil` unless it is their one canonical spelling.
    package static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        if let bytes = text.withContiguousStorageIfAvailable({ decode(letters: $0) }) {
            return bytes
        }
        return Array(text).withUnsafeBufferPointer { decode(letters: $0) }
    }

    /// The bytes spelled by `text`; `nil` unless it is their one canonical spelling.
    package static func decode(_ text: String) -> [UInt8]? {
        decode(text.utf8)
    }

    private static func decode(letters: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
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
