/// Fits lines to the size of a screen.
struct ScreenLayout {
    let rows: Int
    let columns: Int

    /// The indentation of the rest of a line that is continued on the next one.
    private static let indent = 6

    /// Returns lines that fit: those that are too wide are continued on the next line, and if there
    /// are too many, the last one says how many are missing.
    func fit(_ lines: [String]) -> [String] {
        let all = lines.flatMap(wrapped)
        guard all.count > rows else { return all }
        let shown = max(0, rows - 1)
        return all.prefix(shown) + ["… \(all.count - shown) more lines"]
    }

    /// Breaks a line at spaces; a word that is too wide stays whole.
    private func wrapped(_ line: String) -> [String] {
        guard Self.width(line[...]) > columns else { return [line] }
        var lines: [String] = []
        var current = ""
        var width = 0
        for piece in Self.pieces(line) {
            let added = Self.width(piece)
            if width + added > columns, current.contains(where: { $0 != " " }) {
                lines.append(current)
                let word = piece.drop { $0 == " " }
                current = String(repeating: " ", count: min(Self.indent, columns / 2)) + word
                width = Self.width(current[...])
            } else {
                current += piece
                width += added
            }
        }
        return lines + [current]
    }

    /// Returns the words of a line, each with the spaces before it.
    private static func pieces(_ line: String) -> [Substring] {
        var pieces: [Substring] = []
        var start = line.startIndex
        var hasWord = false
        for index in line.indices {
            let isSpace = line[index] == " "
            if isSpace, hasWord {
                pieces.append(line[start..<index])
                start = index
                hasWord = false
            } else if !isSpace {
                hasWord = true
            }
        }
        return pieces + [line[start...]]
    }

    /// Returns the width in columns without the escape sequences of colours.
    private static func width(_ text: Substring) -> Int {
        var (width, isEscape) = (0, false)
        for character in text {
            if character == "\u{1B}" {
                isEscape = true
            } else if isEscape {
                isEscape = character != "m"
            } else {
                width += character.columns
            }
        }
        return width
    }
}
