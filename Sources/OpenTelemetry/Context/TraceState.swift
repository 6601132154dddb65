/// What vendors pass along with a trace (W3C Trace Context, section 3.3): passed on as it came, and
/// never grown.
package struct TraceState: Sendable, Hashable {
    /// As the field has it; empty for none.
    package let text: String

    /// Most members of the list.
    private static let membersMax = 32
    /// The longest text that is kept, in bytes, which is what has to be passed on at least.
    private static let bytesMax = 512
    /// Of a text that is longer, members beyond so many bytes go first.
    private static let memberBytesKept = 128
    /// Longer ones are not looked at.
    private static let inputBytesMax = 8_192

    /// None.
    package init() { text = "" }

    /// Reads a field, or several of them joined with commas.
    ///
    /// - Returns: `nil` where it is not a list of up to 32 `KEY=VALUE` of different keys.
    package init?(_ field: String) {
        guard field.utf8.count <= Self.inputBytesMax else { return nil }
        var members: [Substring] = []
        var keys: Set<Substring> = []
        for part in field.split(separator: ",") {
            let member = Self.trimmed(part)
            // An empty member is allowed, and says nothing.
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
        // The newest are in front.
        while bytes(kept) > bytesMax { kept.removeLast() }
        return kept
    }

    private static func trimmed(_ text: Substring) -> Substring {
        func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" }
        var text = text.drop(while: isBlank)
        while let last = text.last, isBlank(last) { text.removeLast() }
        return text
    }

    /// Level 2: a lower-case letter or digit, and then up to 255 of those and `_-*/@`.
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

    /// Up to 256 printable characters of ASCII but `,` and `=`; what is trimmed is no blank at the
    /// end.
    private static func isValue(_ value: Substring) -> Bool {
        !value.isEmpty && value.utf8.count <= 256
            && value.utf8.allSatisfy {
                (0x20...0x7E).contains($0) && $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: "=")
            }
    }
}
