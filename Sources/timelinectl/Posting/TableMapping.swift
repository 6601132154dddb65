import ArgumentParser

/// The entity of a catalog that each row of a table is, or is a part of.
struct TableMapping: Sendable, Equatable {
    /// A column, and the name that the change has for it.
    struct Column: Sendable, Equatable {
        let column: String
        let name: String
    }

    let schema: String
    let table: String
    let entity: String
    /// The column with the entity's id.
    let id: String
    /// The columns whose changes are announced; empty for all, which are then not named.
    let properties: [Column]
    /// The columns whose values rules compare.
    let attributes: [Column]
    /// Whether a row is a part of the entity, which an inserted or deleted row only updates.
    let isPart: Bool

    /// The table's name as SQL reads it.
    var quotedName: String { "\(SQL.identifier(schema)).\(SQL.identifier(table))" }

    /// The columns that the mapping names.
    var columns: [String] { [id] + (properties + attributes).map(\.column) }
}

extension TableMapping.Column: ExpressibleByArgument {
    /// Reads `column` or `column=name`.
    init?(argument: String) {
        let equals = argument.lastIndex(of: "=")
        self.init(
            column: String(argument[..<(equals ?? argument.endIndex)]),
            name: equals.map { String(argument[argument.index(after: $0)...]) } ?? argument)
        if column.isEmpty || name.isEmpty { return nil }
    }
}
