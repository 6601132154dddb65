/// Lines as a terminal shows them, from top to bottom.
struct TextBlock: Equatable {
    var lines: [String]

    /// Creates a block from untrusted text: characters that would move the cursor or change the
    /// writing direction are removed.
    init(_ text: String) {
        lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
            .map { Self.harmless(String($0)) }
    }

    init(lines: [String]) { self.lines = lines }

    static func line(_ text: String) -> String {
        TextBlock(text).lines.joined(separator: " ")
    }

    private static func harmless(_ text: String) -> String {
        var scalars = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            // A zero-width joiner holds many emoji together.
            case .format where scalar == "\u{200D}": scalars.append(scalar)
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate:
                scalars.append("\u{FFFD}")
            default: scalars.append(scalar)
            }
        }
        return String(scalars)
    }

    /// The width of the widest line, in columns.
    var width: Int { lines.map(Self.width).max() ?? 0 }

    private static func width(_ line: String) -> Int { line.reduce(0) { $0 + $1.columns } }

    /// Stacks the blocks vertically.
    static func above(_ blocks: [TextBlock], toTheRight: Bool = false) -> TextBlock {
        let all = TextBlock(lines: blocks.flatMap(\.lines))
        guard toTheRight else { return all }
        return TextBlock(
            lines: all.lines.map { line in
                String(repeating: " ", count: all.width - width(line)) + line
            })
    }

    /// Places the blocks side by side, `gap` columns apart.
    static func beside(_ blocks: [TextBlock], gap: Int, fromBottom: Bool = false) -> TextBlock {
        let blocks = blocks.filter { !$0.lines.isEmpty }
        let height = blocks.map(\.lines.count).max() ?? 0
        let lines = (0..<height).map { row in
            var line = ""
            for (index, block) in blocks.enumerated() {
                let row = fromBottom ? row - height + block.lines.count : row
                let part = block.lines.indices.contains(row) ? block.lines[row] : ""
                line += part
                guard index < blocks.count - 1 else { continue }
                line += String(repeating: " ", count: block.width - width(part) + gap)
            }
            return line
        }
        return TextBlock(lines: lines)
    }

    /// A table of rows below their headings, or `none` without rows; the content of a cell stays on
    /// its line. `next` is the option that asks for the next page.
    static func table(
        _ headings: [String], _ rows: [[String]], none: String? = nil, next: String? = nil
    ) -> String {
        var lines = columns([headings] + rows)
        if rows.isEmpty, let none { lines = [none] }
        if let next { lines.append("next page: \(next)") }
        return lines.joined(separator: "\n")
    }

    /// Rows as aligned columns, one line each; the content of a cell stays on its line.
    static func columns(_ rows: [[String]], indent: Int = 0) -> [String] {
        let count = rows.map(\.count).max() ?? 0
        let columns = (0..<count).map { column in
            TextBlock(
                lines: rows.map { row in
                    row.indices.contains(column) ? line(row[column]) : ""
                })
        }
        return beside(columns, gap: 2).lines.map { line in
            let end = line.lastIndex { $0 != " " }
            return String(repeating: " ", count: indent) + (end.map { line[...$0] } ?? "")
        }
    }

    var framed: TextBlock {
        let width = width
        let edge = String(repeating: "─", count: width + 2)
        let rows = lines.map { line in
            "│ \(line)\(String(repeating: " ", count: width - Self.width(line))) │"
        }
        return TextBlock(lines: ["╭\(edge)╮"] + rows + ["╰\(edge)╯"])
    }
}

extension Character {
    /// The number of columns that a terminal uses: two for emoji and East Asian characters.
    var columns: Int {
        guard let first = unicodeScalars.first else { return 0 }
        let isWide =
            first.properties.isEmojiPresentation || unicodeScalars.contains("\u{FE0F}")
            || Self.wide.contains { $0.contains(first.value) }
        return isWide ? 2 : 1
    }

    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE4F,
        0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x20000...0x3FFFD,
    ]
}
