import GatewayCluster
import WidgetModel

/// A message of a server that streams a slot (PostgreSQL's manual, "Streaming Replication
/// Protocol").
enum ReplicationMessage: Equatable {
    case change(LogicalMessage)
    /// Everything up to this position was sent.
    case keepalive(position: UInt64, wantsReply: Bool)

    init(_ bytes: [UInt8]) throws(PostgresError) {
        var reader = MessageReader(bytes)
        switch try reader.integer(UInt8.self) {
        case UInt8(ascii: "w"):
            // Its start and end in the log, and the server's clock.
            try reader.skip(24)
            self = .change(try LogicalMessage(&reader))
        case UInt8(ascii: "k"):
            let position = try reader.integer(UInt64.self)
            try reader.skip(8)
            self = .keepalive(
                position: position, wantsReply: try reader.integer(UInt8.self) != 0)
        case let type: throw MessageReader.fault("has the unknown type \(type)")
        }
    }
}

/// A message of `pgoutput` (PostgreSQL's manual, "Logical Replication Message Formats", version 1
/// of the protocol).
enum LogicalMessage: Equatable {
    /// A transaction begins, with the position of its commit and the time of that, in microseconds
    /// since 2000.
    case begin(commit: UInt64, time: Int64)
    /// A transaction ends at this position.
    case commit(end: UInt64)
    case relation(LogicalRelation)
    case insert(relation: UInt32, [Value])
    /// The row before has its values only if the table's replica identity is full; otherwise those
    /// of its key, if they changed.
    case update(relation: UInt32, from: OldRow?, to: [Value])
    case delete(relation: UInt32, OldRow)
    case truncate([UInt32])
    /// An origin, a type, or one of a later version.
    case other

    enum Value: Equatable {
        case null
        /// Stored apart (TOAST), and not changed.
        case unchanged
        case text(String)
    }

    /// The known part of a row before its change.
    enum OldRow: Equatable {
        /// Columns that are not in the key are null.
        case key([Value])
        case whole([Value])
    }

    fileprivate init(_ reader: inout MessageReader) throws(PostgresError) {
        switch try reader.integer(UInt8.self) {
        case UInt8(ascii: "B"):
            self = .begin(
                commit: try reader.integer(UInt64.self), time: try reader.integer(Int64.self))
            // The transaction's number.
            try reader.skip(4)
        case UInt8(ascii: "C"):
            // Flags, and where the commit starts.
            try reader.skip(9)
            self = .commit(end: try reader.integer(UInt64.self))
            // The time.
            try reader.skip(8)
        case UInt8(ascii: "R"): self = .relation(try LogicalRelation(&reader))
        case UInt8(ascii: "I"):
            let relation = try reader.integer(UInt32.self)
            guard case .new(let row) = try reader.row() else {
                throw MessageReader.fault("inserts no row")
            }
            self = .insert(relation: relation, row)
        case UInt8(ascii: "U"):
            let relation = try reader.integer(UInt32.self)
            switch try reader.row() {
            case .new(let row): self = .update(relation: relation, from: nil, to: row)
            case .old(let old):
                guard case .new(let row) = try reader.row() else {
                    throw MessageReader.fault("updates to no row")
                }
                self = .update(relation: relation, from: old, to: row)
            }
        case UInt8(ascii: "D"):
            let relation = try reader.integer(UInt32.self)
            guard case .old(let row) = try reader.row() else {
                throw MessageReader.fault("deletes no row")
            }
            self = .delete(relation: relation, row)
        case UInt8(ascii: "T"):
            let count = try reader.integer(UInt32.self)
            // Options.
            try reader.skip(1)
            var relations: [UInt32] = []
            for _ in 0..<count { relations.append(try reader.integer(UInt32.self)) }
            self = .truncate(relations)
        default: self = .other
        }
    }
}

/// A table as a message describes it.
struct LogicalRelation: Equatable {
    struct Column: Equatable {
        let name: String
        fileprivate(set) var isKey: Bool
        /// The number of its type.
        fileprivate(set) var type: UInt32

        var isBoolean: Bool { type == 16 }
    }

    let number: UInt32
    let schema: String
    let table: String
    private(set) var isIdentityFull: Bool
    private(set) var columns: [Column]

    fileprivate init(_ reader: inout MessageReader) throws(PostgresError) {
        number = try reader.integer(UInt32.self)
        let schema = try reader.text()
        self.schema = schema.isEmpty ? "pg_catalog" : schema
        table = try reader.text()
        isIdentityFull = try reader.integer(UInt8.self) == UInt8(ascii: "f")
        var columns: [Column] = []
        for _ in 0..<(try reader.integer(UInt16.self)) {
            let isKey = try reader.integer(UInt8.self) & 1 == 1
            let name = try reader.text()
            let type = try reader.integer(UInt32.self)
            // The type's modifier.
            try reader.skip(4)
            columns.append(Column(name: name, isKey: isKey, type: type))
        }
        self.columns = columns
    }

    /// Replaces types of the database by those that PostgreSQL brings, where values have the same
    /// texts.
    mutating func replaceTypes(_ types: [UInt32: UInt32]) {
        for index in columns.indices {
            columns[index].type = types[columns[index].type] ?? columns[index].type
        }
    }

    /// Trusts no row before a change: a partition logs less than the table says.
    mutating func distrustIdentity() {
        isIdentityFull = false
        for index in columns.indices { columns[index].isKey = false }
    }

    /// Returns a row by the names of its columns.
    ///
    /// - Parameters:
    ///   - keyOnly: Whether to leave out, as unknown, what is not in the key.
    ///   - knowsNull: Whether NULL is a value; otherwise it is left out, too.
    func row(
        _ values: [LogicalMessage.Value], keyOnly: Bool = false, knowsNull: Bool = true
    ) throws(PostgresError) -> JSONObject {
        guard values.count == columns.count else {
            throw MessageReader.fault("has \(values.count) of \(columns.count) columns")
        }
        var row = JSONObject()
        for (column, value) in zip(columns, values) where column.isKey || !keyOnly {
            switch value {
            case .null: if knowsNull { row[column.name] = .null }
            case .unchanged: row[column.name] = RowChange.unchanged
            case .text(let text):
                row[column.name] = column.isBoolean ? .bool(text == "t") : .string(text)
            }
        }
        return row
    }

    /// Returns the known part of a row before its change: without one, the key of the new row.
    func row(
        _ old: LogicalMessage.OldRow?, before new: [LogicalMessage.Value]
    ) throws(PostgresError) -> JSONObject {
        switch old {
        // No column of a key is NULL.
        case .whole(let values)?: try row(values, knowsNull: isIdentityFull)
        case .key(let values)?: try row(values, knowsNull: false)
        case nil: try row(new, keyOnly: true)
        }
    }
}

/// Reads a message, whose numbers have the most significant byte first.
private struct MessageReader {
    enum Row {
        case old(LogicalMessage.OldRow)
        case new([LogicalMessage.Value])
    }

    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Returns a protocol violation.
    static func fault(_ text: String) -> PostgresError {
        .other(sqlState: "08P01", message: "a message of logical replication \(text)")
    }

    private mutating func read(_ count: Int) throws(PostgresError) -> ArraySlice<UInt8> {
        guard count <= bytes.count - position else { throw Self.fault("is cut short") }
        defer { position += count }
        return bytes[position..<position + count]
    }

    mutating func skip(_ count: Int) throws(PostgresError) { _ = try read(count) }

    mutating func integer<Number: FixedWidthInteger>(
        _: Number.Type
    ) throws(PostgresError) -> Number {
        try read(Number.bitWidth / 8).reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
    }

    /// Returns a text up to its NUL.
    mutating func text() throws(PostgresError) -> String {
        guard let end = bytes[position...].firstIndex(of: 0) else {
            throw Self.fault("is cut short")
        }
        defer { position = end + 1 }
        return String(decoding: bytes[position..<end], as: UTF8.self)
    }

    mutating func row() throws(PostgresError) -> Row {
        switch try integer(UInt8.self) {
        case UInt8(ascii: "N"): .new(try values())
        case UInt8(ascii: "K"): .old(.key(try values()))
        case UInt8(ascii: "O"): .old(.whole(try values()))
        case let kind: throw Self.fault("has the unknown kind of row \(kind)")
        }
    }

    private mutating func values() throws(PostgresError) -> [LogicalMessage.Value] {
        var values: [LogicalMessage.Value] = []
        for _ in 0..<(try integer(UInt16.self)) {
            switch try integer(UInt8.self) {
            case UInt8(ascii: "n"): values.append(.null)
            case UInt8(ascii: "u"): values.append(.unchanged)
            case UInt8(ascii: "t"):
                let count = Int(try integer(UInt32.self))
                values.append(.text(String(decoding: try read(count), as: UTF8.self)))
            case let kind: throw Self.fault("has the unknown kind of value \(kind)")
            }
        }
        return values
    }
}
