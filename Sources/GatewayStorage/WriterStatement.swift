import Foundation
import GRDB
import GRDBSQLite

/// The statements that run most often.
///
/// They are bound and stepped with SQLite's own calls. A change of a batch of 100 costs the writer
/// 9 us of CPU that way, its lookup, row and index included; with GRDB's cached statements, whose
/// arguments and rows are boxed and observed, it costs 13.5 us. There is one writer, and
/// 50,000 changes a second leave it 20 us for each.
enum WriterStatement: Int, CaseIterable {
    case begin
    case commit
    case findEvent
    case appendRow
    case findRegistration
    case updateRegistration
    case insertRegistration
    case putSeen
    case listAttributes
    case putAttribute
    case putPushClient
    case removePushClient
    case appendPushAttempt

    /// Whether the statement changes the database.
    var isWrite: Bool {
        switch self {
        case .begin, .commit, .findEvent, .findRegistration, .listAttributes: false
        case .appendRow, .updateRegistration, .insertRegistration, .putSeen, .putAttribute,
            .putPushClient, .removePushClient, .appendPushAttempt:
            true
        }
    }

    /// The statement's text; its parameters are bound in their order.
    var sql: String {
        switch self {
        case .begin: "BEGIN IMMEDIATE TRANSACTION"
        case .commit: "COMMIT TRANSACTION"
        case .findEvent:
            "SELECT sequence, payload, app, source, event_id FROM log WHERE event_key = ?"
        case .appendRow:
            """
            INSERT INTO log (sequence, app, type, source, event_id, event_key, accepted_at, payload)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """
        case .findRegistration:
            """
            SELECT r.payload, r.updated_at, s.seen_at FROM registration r
            JOIN registration_seen s USING (app, client)
            WHERE r.app = ? AND r.client = ?
            """
        case .updateRegistration:
            "UPDATE registration SET updated_at = ?, payload = ? WHERE app = ? AND client = ?"
        case .insertRegistration:
            "INSERT INTO registration (updated_at, payload, app, client) VALUES (?, ?, ?, ?)"
        case .putSeen:
            """
            INSERT INTO registration_seen (app, client, seen_at) VALUES (?, ?, ?)
            ON CONFLICT (app, client) DO UPDATE SET seen_at = max(seen_at, excluded.seen_at)
            """
        case .listAttributes:
            "SELECT name, value FROM registration_attribute WHERE app = ? AND client = ?"
        case .putAttribute:
            """
            INSERT INTO registration_attribute (app, name, value, client) VALUES (?, ?, ?, ?)
            """
        case .putPushClient:
            """
            INSERT INTO push_client (app, client, payload) VALUES (?, ?, ?)
            ON CONFLICT (app, client) DO UPDATE SET payload = excluded.payload
            """
        case .removePushClient: "DELETE FROM push_client WHERE app = ? AND client = ?"
        case .appendPushAttempt:
            """
            INSERT INTO push_attempt
                (number, at, app, client, channel, outcome, reason, reference, milliseconds,
                sequence, cause)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """
        }
    }
}

/// The writer's connection with its ``WriterStatement``s, each looked up once per transaction.
struct WriterConnection {
    /// The connection itself, for all occasional statements.
    let database: Database
    private var prepared: [Statement?]
    /// The texts and bytes bound to the current statement, one after the other. The first byte is
    /// unused: an empty text needs an address, because without one it would be NULL.
    private var lent: [UInt8] = [0]

    init(_ database: Database) {
        self.database = database
        prepared = Array(repeating: nil, count: WriterStatement.allCases.count)
    }

    /// Runs a statement to completion.
    ///
    /// - Parameters:
    ///   - values: The values of the parameters, in order.
    ///   - row: Called with each row of the result, which is valid only during the call.
    /// - Throws: `DatabaseError`, or the error of `row`.
    mutating func run(
        _ statement: WriterStatement, _ values: [StatementValue] = [],
        row: (ResultRow) throws -> Void = { _ in }
    ) throws {
        let pointer = try prepare(statement).sqliteStatement
        lent.removeSubrange(1...)
        for value in values { value.append(to: &lent) }
        try lent.withUnsafeBufferPointer { lent in
            // Sound: SQLite reads the bound memory until the bindings are cleared, which is before
            // the buffer's closure ends. The reset also ends the statement's read of the database;
            // its own error code repeats that of a step.
            defer {
                sqlite3_reset(pointer)
                sqlite3_clear_bindings(pointer)
            }
            var rest = UnsafeRawBufferPointer(lent).dropFirst()
            for (index, value) in values.enumerated() {
                let place = CInt(truncatingIfNeeded: index + 1)
                try check(value.bind(to: pointer, at: place, from: &rest), statement)
            }
            while true {
                switch sqlite3_step(pointer) {
                case SQLITE_ROW: try row(ResultRow(statement: pointer))
                case SQLITE_DONE: return
                case let code: try check(code, statement)
                }
            }
        }
    }

    /// The number of rows that the last modifying statement changed.
    var changes: Int { Int(sqlite3_changes(database.sqliteConnection)) }

    private mutating func prepare(_ statement: WriterStatement) throws -> Statement {
        if let known = prepared[statement.rawValue] { return known }
        let fresh = try database.cachedStatement(sql: statement.sql)
        prepared[statement.rawValue] = fresh
        return fresh
    }

    private func check(_ code: CInt, _ statement: WriterStatement) throws {
        guard code != SQLITE_OK else { return }
        throw DatabaseError(
            resultCode: ResultCode(rawValue: code),
            message: String(cString: sqlite3_errmsg(database.sqliteConnection)),
            sql: statement.sql)
    }
}

enum StatementValue {
    case null
    case integer(Int64)
    case text(String)
    /// Bytes; empty ones are bound as NULL.
    case bytes(Data)

    static func text(orNull text: String?) -> StatementValue { text.map { .text($0) } ?? .null }

    /// Appends the bytes that must stay in place while the statement runs.
    fileprivate func append(to lent: inout [UInt8]) {
        switch self {
        case .null, .integer: break
        case .text(var text): text.withUTF8 { lent.append(contentsOf: $0) }
        case .bytes(let data): data.withUnsafeBytes { lent.append(contentsOf: $0) }
        }
    }

    /// Binds to the parameter at `index`, counted from 1, consuming the bytes that ``append(to:)``
    /// appended from the front of `lent`.
    ///
    /// - Returns: SQLite's result code.
    fileprivate func bind(
        to statement: OpaquePointer, at index: CInt, from lent: inout Slice<UnsafeRawBufferPointer>
    ) -> CInt {
        func take(_ count: Int) -> UnsafeRawPointer? {
            defer { lent = lent.dropFirst(count) }
            return lent.base.baseAddress.map { $0 + lent.startIndex }
        }
        switch self {
        case .null:
            return sqlite3_bind_null(statement, index)
        case .integer(let number):
            return sqlite3_bind_int64(statement, index, number)
        case .text(let text):
            let count = text.utf8.count
            return sqlite3_bind_text64(
                statement, index, take(count)?.assumingMemoryBound(to: CChar.self),
                sqlite3_uint64(count), nil, UInt8(SQLITE_UTF8))
        case .bytes(let data) where data.isEmpty:
            return sqlite3_bind_null(statement, index)
        case .bytes(let data):
            return sqlite3_bind_blob64(
                statement, index, take(data.count), sqlite3_uint64(data.count), nil)
        }
    }
}

/// A row of a statement's result; columns are counted from 0.
struct ResultRow {
    fileprivate let statement: OpaquePointer

    func integer(_ column: CInt) -> Int64 { sqlite3_column_int64(statement, column) }

    /// Returns the text of a column; empty for NULL.
    func text(_ column: CInt) -> String {
        guard let start = sqlite3_column_text(statement, column) else { return "" }
        let count = Int(sqlite3_column_bytes(statement, column))
        // Sound: the bytes stay in place until the next column or step, and are copied.
        return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    /// Returns the bytes of a column; empty for NULL.
    func bytes(_ column: CInt) -> Data {
        guard let start = sqlite3_column_blob(statement, column) else { return Data() }
        // Sound: see `text(_:)` above.
        return Data(bytes: start, count: Int(sqlite3_column_bytes(statement, column)))
    }
}
