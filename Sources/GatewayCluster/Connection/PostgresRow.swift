import CPostgres

/// A row of a statement's result in binary format; columns are counted from 0.
package struct PostgresRow: Sendable, Equatable {
    private let columns: [[UInt8]?]

    /// Creates a row from the binary form of its columns; `nil` is NULL.
    init(columns: [[UInt8]?]) { self.columns = columns }

    /// Copies a row of a result.
    package init(_ result: OpaquePointer, row: Int32) {
        columns = (0..<PQnfields(result)).map { column in
            guard PQgetisnull(result, row, column) == 0,
                let start = PQgetvalue(result, row, column)
            else { return nil }
            // Sound: the value has this length and stays in place until the result is cleared.
            return Array(
                UnsafeRawBufferPointer(
                    start: start, count: Int(PQgetlength(result, row, column))))
        }
    }

    /// Whether a column is NULL; `true` for a column that the row does not have.
    package func isNull(_ column: Int) -> Bool {
        !columns.indices.contains(column) || columns[column] == nil
    }

    /// Returns the bytes of a column.
    ///
    /// - Throws: `PostgresError.unexpectedAnswer` for NULL.
    package func bytes(_ column: Int) throws(PostgresError) -> [UInt8] {
        guard columns.indices.contains(column), let bytes = columns[column] else {
            throw .unexpectedAnswer
        }
        return bytes
    }

    /// Returns a `smallint`, `int` or `bigint`.
    ///
    /// - Throws: `PostgresError.unexpectedAnswer` for NULL or another type.
    package func integer(_ column: Int) throws(PostgresError) -> Int64 {
        let bytes = try bytes(column)
        guard let first = bytes.first, [2, 4, 8].contains(bytes.count) else {
            throw .unexpectedAnswer
        }
        // The sign is that of the first byte.
        return bytes.reduce(first >= 0x80 ? -1 : 0) { $0 << 8 | Int64($1) }
    }

    /// Returns a `uuid`.
    ///
    /// - Throws: `PostgresError.unexpectedAnswer` for NULL or another type.
    package func uuid(_ column: Int) throws(PostgresError) -> UInt128 {
        let bytes = try bytes(column)
        guard bytes.count == 16 else { throw .unexpectedAnswer }
        return bytes.reduce(0) { $0 << 8 | UInt128($1) }
    }

    /// Returns a `text`.
    ///
    /// - Throws: `PostgresError.unexpectedAnswer` for NULL.
    package func text(_ column: Int) throws(PostgresError) -> String {
        String(decoding: try bytes(column), as: UTF8.self)
    }

    /// Returns a `boolean`.
    ///
    /// - Throws: `PostgresError.unexpectedAnswer` for NULL.
    package func boolean(_ column: Int) throws(PostgresError) -> Bool {
        try bytes(column) == [1]
    }
}
