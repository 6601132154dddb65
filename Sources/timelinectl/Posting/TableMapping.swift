import ArgumentParser
import WidgetModel

/// The entity of a catalog that each row of a table is, or is a part of.
struct TableMapping: Sendable, Equatable {
    /// A column, and the name that the change has for it.
    struct Column: Sendable, Equatable {
        let column: String
        let name: String
        var form = Form.same
    }

    /// How the text of a value in the log becomes that of the outbox's trigger.
    enum Form: Sendable {
        case same
        case number
        /// The log has the blanks of `char(n)`.
        case padded
        /// It may be another text, which no rule would match.
        case unknown

        /// Returns the text that rules compare; `nil` if it is unknown.
        func text(of value: JSONValue) -> String? {
            var text = ParameterValue.text(of: value)
            switch self {
            case .same: break
            case .number:
                let number = text.flatMap { try? JSONValue(parsing: $0) }
                text = number.flatMap { ParameterValue.text(of: $0) } ?? text
            case .padded: while text?.last == " " { text?.removeLast() }
            case .unknown: text = nil
            }
            return text
        }
    }

    let schema: String
    let table: String
    let entity: String
    /// The column with the entity's id.
    let id: String
    /// The columns whose changes are announced; empty for all, which are then not named.
    let properties: [Column]
    /// The columns whose values rules compare.
    var attributes: [Column]
    /// Whether a row is a part of the entity, which an inserted or deleted row only updates.
    let isPart: Bool
    var idForm = Form.same

    /// The table's name as SQL reads it.
    var quotedName: String { SQL.name(schema, table) }

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
