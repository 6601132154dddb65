/// What is refused before a YAML text is composed.
///
/// Composing compares the names of each mapping by value. A name that is a list of aliases of
/// lists of aliases has a value of astronomical size, and comparing it never ends. Names have to
/// be text anyway, so a text with aliases may not have any that could be something else.
enum YAMLGuard {
    /// Whether the text has aliases and a place where a member's name may be more than text: a
    /// name after a question mark, an alias or a bracket before a colon. It may err on the side of
    /// refusing, inside quotes.
    static func isSuspicious(_ text: some StringProtocol) -> Bool {
        let bytes = Array(text.utf8)
        var hasAlias = false
        var hasComplexName = false
        for (index, byte) in bytes.enumerated() {
            switch byte {
            case UInt8(ascii: "*") where startsToken(bytes, index):
                hasAlias = true
                if !hasComplexName {
                    let end = endOfAlias(bytes, from: index + 1)
                    hasComplexName = end.map { precedesColon(bytes, $0) } ?? true
                }
            case UInt8(ascii: "?") where startsToken(bytes, index):
                hasComplexName = true
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                hasComplexName = hasComplexName || precedesColon(bytes, index + 1)
            default: break
            }
            if hasAlias, hasComplexName { return true }
        }
        return false
    }

    /// Longer names of aliases are refused.
    private static let aliasBytesMax = 128

    /// The end of the name of an alias; `nil` for one that is too long to be looked at for each alias
    /// of a text.
    private static func endOfAlias(_ bytes: [UInt8], from start: Int) -> Int? {
        let name = bytes[start...].prefix(aliasBytesMax + 1).prefix {
            !isSpace($0) && !",]}:".utf8.contains($0)
        }
        return name.count <= aliasBytesMax ? name.endIndex : nil
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
    }

    /// Whether a token can begin at `index`: at the start, after white space or an indicator.
    private static func startsToken(_ bytes: [UInt8], _ index: Int) -> Bool {
        guard index > 0 else { return true }
        let byte = bytes[index - 1]
        // Anything but letters and digits: other line ends and the like count as white space.
        return byte >= 0x80 || isSpace(byte) || ",[{-:?\"'".utf8.contains(byte)
    }

    private static func precedesColon(_ bytes: [UInt8], _ start: Int) -> Bool {
        bytes[start...].first { !isSpace($0) } == UInt8(ascii: ":")
    }
}
