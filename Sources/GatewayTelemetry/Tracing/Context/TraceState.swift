/// The vendor-specific state of a trace (W3C Trace Context, section 3.3): propagated unchanged, and
/// never extended.
package struct TraceState: Sendable, Hashable {
    /// The value of the field; empty for none.
    package let text: String

    /// The maximum number of list members.
    private static let membersMax = 32
    /// The longest propagated text, bytes; it is the minimum that must be propagated.
    private static let bytesMax = 512
    /// The length of members that are removed first from a longer text, bytes.
    private static let memberBytesKept = 128
    /// The longest field that is parsed, bytes.
    private static let inputBytesMax = 8_192

    package init() { text = "" }

    /// Parses a field, or several joined with commas; `nil` unless it is a list of up to 32
    /// `KEY=VALUE` with different keys.
    package init?(_ field: String) {
        guard field.utf8.count <= Self.inputBytesMax else { return nil }
        var members: [Substring] = []
        var keys: Set<Substring> = []
        for part in field.split(separator: ",") {
            let member = Self.trimmed(part)
            // An empty member is allowed and has no meaning.
            if member.isEmpty { continue }
            guard members.count < Self.membersMax,
                let mark = member.utf8.firstIndex(of: UInt8(ascii: "=")),
                Self.isKey(member[..<mark]), Self.isValue(member[member.index(after: mark)...]),
                keys.insert(member[..<mark]).inserted
            else { return nil }
            members.append(member)
        }
        text = Self.cut(members).joined(separator: ",")
    }

    private static func cut(_ members: [Substring]) -> [Substring] {
        func bytes(_ members: [Substring]) -> Int {
            members.reduce(max(0, members.count - 1)) { $0 + $1.utf8.count }
        }
        guard bytes(members) > bytesMax else { return members }
        var kept = members.filter { $0.utf8.count <= memberBytesKept }
        // The newest members come first.
        while bytes(kept) > bytesMax { kept.removeLast() }
        return kept
    }

    private static func trimmed(_ text: Substring) -> Substring {
        func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" }
        var text = text.drop(while: isBlank)
        while let last = text.last, isBlank(last) { text.removeLast() }
        return text
    }

    /// Checks a key of Level 2: a lower-case letter or digit, then up to 255 of those and `_-*/@`.
    private static func isKey(_ key: Substring) -> Bool {
        func isAlphanumeric(_ byte: UInt8) -> Bool {
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        }
        guard let first = key.utf8.first, isAlphanumeric(first), key.utf8.count <= 256 else {
            return false
        }
        return key.utf8.allSatisfy { isAlphanumeric($0) || "_-*/@".utf8.contains($0) }
    }

    /// Checks a value: up to 256 printable ASCII characters except `,` and `=`, without a trailing
    /// blank because it was trimmed.
    private static func isValue(_ value: Substring) -> Bool {
        !value.isEmpty && value.utf8.count <= 256
            && value.utf8.allSatisfy {
                (0x20...0x7E).contains($0) && $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: "=")
            }
    }
}
