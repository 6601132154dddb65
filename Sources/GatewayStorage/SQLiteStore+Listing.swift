import Foundation
import GRDB

/// Reads concurrent with the writer. They see the state on disk when they begin, and block no one.
extension SQLiteStore {
    /// Returns one page of the registrations of an app, ordered by client id.
    ///
    /// - Parameters:
    ///   - attribute: An attribute value to filter by; `nil` for all registrations.
    ///   - prefix: The beginning of the ids of wanted clients.
    ///   - after: The last client id of the previous page; `nil` for the first page.
    ///   - limit: The maximum number of rows; the page is shorter if it would exceed
    ///     `StoreConfiguration.batchBytesMax`.
    package func registrations(
        app: String, attribute: (name: String, value: String)?, prefix: String = "",
        after: String?, limit: Int
    ) async throws -> RegistrationPage {
        let columns = "r.app, r.client, r.payload, r.updated_at, s.seen_at"
        let sql: String
        var arguments: StatementArguments
        if let attribute {
            sql = """
                SELECT \(columns) FROM registration_attribute a
                JOIN registration r USING (app, client)
                JOIN registration_seen s USING (app, client)
                WHERE a.app = ? AND a.name = ? AND a.value = ?
                AND a.client > ? AND a.client >= ? AND a.client < ?
                ORDER BY a.client LIMIT ?
                """
            arguments = [app, attribute.name, attribute.value]
        } else {
            sql = """
                SELECT \(columns) FROM registration r
                JOIN registration_seen s USING (app, client)
                WHERE r.app = ? AND r.client > ? AND r.client >= ? AND r.client < ?
                ORDER BY r.client LIMIT ?
                """
            arguments = [app]
        }
        let count = min(max(limit, 1), 100_000)
        // Fetches one row more than requested, to find out whether there are more.
        // Texts are compared as bytes: all with the prefix sort before this end.
        arguments += [after ?? "", prefix, prefix + "\u{10FFFF}", count + 1]
        return try await reading { [arguments, self] db in
            let page = try self.bounded(
                Row.fetchCursor(db.cachedStatement(sql: sql), arguments: arguments),
                RegistrationRow.init, bytes: \.payload.count)
            return RegistrationPage(
                rows: Array(page.rows.prefix(count)),
                hasMore: page.isCut || page.rows.count > count)
        }
    }

    /// Returns the registration of a client; `nil` if it has none.
    package func registration(app: String, client: String) async throws -> RegistrationRow? {
        try await reading { try Self.fetchRegistration($0, app: app, client: client) }
    }

    static func fetchRegistration(
        _ db: Database, app: String, client: String
    ) throws -> RegistrationRow? {
        let statement = try db.cachedStatement(
            sql: """
                SELECT r.app, r.client, r.payload, r.updated_at, s.seen_at FROM registration r
                JOIN registration_seen s USING (app, client)
                WHERE r.app = ? AND r.client = ?
                """)
        return try Row.fetchOne(statement, arguments: [app, client]).map(RegistrationRow.init)
    }

    func reading<T: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> T
    ) async throws -> T {
        guard !commits.isClosed else { throw StoreError.closed }
        do {
            return try await database.read(body)
        } catch let error as DatabaseError {
            throw StoreError(error, files: files)
        }
    }

    /// Reads rows until they exceed `StoreConfiguration.batchBytesMax`.
    func bounded<T>(
        _ cursor: RowCursor, _ transform: (Row) throws -> T, bytes: (T) -> Int
    ) throws -> (rows: [T], isCut: Bool) {
        var rows: [T] = []
        var size = 0
        while let row = try cursor.next() {
            if !rows.isEmpty, size >= configuration.batchBytesMax { return (rows, true) }
            let value = try transform(row)
            size += bytes(value)
            rows.append(value)
        }
        return (rows, false)
    }
}
