/// The rules for names in URLs.
public enum Identifier {
    /// The longest client id and app id, bytes.
    public static let bytesMax = 128

    /// Returns whether `text` is a valid client id or app id: 1 to 128 of `A-Za-z0-9._~-`.
    public static func isValid(_ text: String) -> Bool {
        var text = text
        // Sound: the pointer is read within the closure that lends it.
        return text.withUTF8 { bytes in
            !bytes.isEmpty && bytes.count <= bytesMax
                && bytes.allSatisfy { $0.isLetterOrDigit || "._~-".utf8.contains($0) }
        }
    }
}

extension UInt8 {
    /// Whether it is a letter or digit of ASCII.
    package var isLetterOrDigit: Bool {
        switch self {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }
}
