/// Detects YAML texts that must be rejected before they are composed.
///
/// Composing compares the names of each mapping by value. A name that is a list of aliases of lists
/// of aliases has a value of exponential size, and comparing it would not end. Names must be text
/// in any case, so a text with aliases may not contain names that could be anything else.
enum YAMLGuard {
    /// Returns whether the text has aliases and a place where a member's name may be something
    /// other than text: a name after a question mark, or an alias or a bracket before a colon. It
    /// may report false positives inside quotes.
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

    /// The longest alias name, bytes; texts with longer ones are rejected.
    private static let aliasBytesMax = 128

    /// Returns the end of an alias name; `nil` if it is too long. The limit keeps the scan of a
    /// text with many aliases linear.
    private static func endOfAlias(_ bytes: [UInt8], from start: Int) -> Int? {
        let name = bytes[start...].prefix(aliasBytesMax + 1).prefix {
            !isSpace($0) && !",]}:".utf8.contains($0)
        }
        return name.count <= aliasBytesMax ? name.endIndex : nil
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
    }

    /// Returns whether a token can begin at `index`: at the start, or after white space or an
    /// indicator.
    private static func startsToken(_ bytes: [UInt8], _ index: Int) -> Bool {
        guard index > 0 else { return true }
        let byte = bytes[index - 1]
        // Bytes outside ASCII count as white space, because they include other line breaks.
        return byte >= 0x80 || isSpace(byte) || ",[{-:?\"'".utf8.contains(byte)
    }

    private static func precedesColon(_ bytes: [UInt8], _ start: Int) -> Bool {
        bytes[start...].first { !isSpace($0) } == UInt8(ascii: ":")
    }
}
