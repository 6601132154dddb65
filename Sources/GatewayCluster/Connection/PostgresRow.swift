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

    /// Returns an `int[]` or `bigint[]` without NULLs.
    ///
    /// - Throws: `PostgresError.unexpectedAnswer` for NULL or another type.
    package func integers(_ column: Int) throws(PostgresError) -> [Int64] {
        let bytes = try bytes(column)
        func integer(at start: Int, width: Int) throws(PostgresError) -> Int64 {
            guard start + width <= bytes.count else { throw .unexpectedAnswer }
            let field = bytes[start..<start + width]
            return field.reduce(bytes[start] >= 0x80 ? -1 : 0) { $0 << 8 | Int64($1) }
        }
        // The header of an array: dimensions, whether it has NULLs, the type, count and first index.
        let dimensions = try integer(at: 0, width: 4)
        if dimensions == 0 { return [] }
        let count = try integer(at: 12, width: 4)
        // Each element has a length of at least four bytes and four bytes at least.
        guard dimensions == 1, count >= 0, count <= bytes.count / 8 else { throw .unexpectedAnswer }
        var numbers: [Int64] = []
        var start = 20
        for _ in 0..<count {
            let width = try integer(at: start, width: 4)
            guard width == 4 || width == 8 else { throw .unexpectedAnswer }
            numbers.append(try integer(at: start + 4, width: Int(width)))
            start += 4 + Int(width)
        }
        return numbers
    }

    /// Returns a `uuid`.
    ///
    /// - Throws: `PostgresError.unexpectedAnswer` for NULL or another type.
    package func uuid(_ column: Int) throws(PostgresError) -> UInt128 {
        let bytes = try bytes(column)
        guard bytes.count == 16 else { throw .unexpectedAnswer }
        return bytes.reduce(0) { $0 << 8 | UInt128($1) }
    }

    /// Returns a `uuid[]` of one dimension.
    ///
    /// - Throws: `PostgresError.unexpectedAnswer` for NULL, for an element that is NULL and for
    ///   another type.
    package func uuids(_ column: Int) throws(PostgresError) -> [UInt128] {
        // The number of dimensions, flags and the type; then the count and the first index; then
        // each element with its length (`array_send`).
        let (header, elementBytes) = (20, 20)
        let bytes = try bytes(column)
        if bytes.count == 12, bytes.prefix(4).allSatisfy({ $0 == 0 }) { return [] }
        guard bytes.count >= header, bytes.prefix(4).elementsEqual([0, 0, 0, 1]),
            (bytes.count - header) % elementBytes == 0
        else { throw .unexpectedAnswer }
        var keys: [UInt128] = []
        for start in stride(from: header, to: bytes.count, by: elementBytes) {
            guard bytes[start..<start + 4].elementsEqual([0, 0, 0, 16]) else {
                throw .unexpectedAnswer
            }
            keys.append(bytes[start + 4..<start + 20].reduce(0) { $0 << 8 | UInt128($1) })
        }
        return keys
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
