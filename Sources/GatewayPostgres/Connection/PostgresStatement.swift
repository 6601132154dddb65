/// A statement that a session prepares once, when it opens.
package struct PostgresStatement: Sendable, Hashable {
    /// The name on the server; unique among the statements of a session.
    package let name: String
    /// The text, with parameters `$1`, `$2` and so on.
    package let sql: String
    /// Whether rows are delivered one by one, because together they may be large.
    package let isStreamed: Bool

    package init(_ name: String, isStreamed: Bool = false, sql: String) {
        self.name = name
        self.sql = sql
        self.isStreamed = isStreamed
    }

    /// Two statements of one name are the same.
    package static func == (one: Self, other: Self) -> Bool { one.name == other.name }

    /// Hashes the name.
    package func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// One execution of a prepared statement.
package struct PostgresQuery: Sendable {
    package let statement: PostgresStatement
    /// The values of its parameters, in order.
    package let values: [PostgresValue]

    package init(_ statement: PostgresStatement, _ values: [PostgresValue] = []) {
        self.statement = statement
        self.values = values
    }
}
