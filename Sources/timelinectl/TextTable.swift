/// Rows of text in columns.
struct TextTable {
    private var rows: [[String]] = []

    /// No rows.
    init() {}

    /// Adds a row; what is a peer's text cannot move the cursor.
    mutating func add(_ cells: String...) {
        rows.append(cells.map { TextBlock.line($0) })
    }

    /// Whether there are no rows.
    var isEmpty: Bool { rows.isEmpty }

    /// The rows, each with `indent` spaces before it.
    func lines(indent: Int = 0) -> [String] {
        let count = rows.map(\.count).max() ?? 0
        let columns = (0..<count).map { column in
            TextBlock(lines: rows.map { column < $0.count ? $0[column] : "" })
        }
        return TextBlock.beside(columns, gap: 2).lines.map { line in
            let end = line.lastIndex { $0 != " " }
            return String(repeating: " ", count: indent) + (end.map { line[...$0] } ?? "")
        }
    }
}
