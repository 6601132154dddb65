import CPostgres

/// A connection for commands of an operator: it blocks the calling thread, and may run several
/// statements at once.
package final class PostgresAdministration {
    // Sound: this object is not Sendable, so one thread uses it, and it is freed once, in `deinit`.
    private let connection: OpaquePointer?

    /// Connects to the first server that takes writes.
    ///
    /// - Throws: `PostgresError.connectionLost` when none does.
    package init(_ address: PostgresAddress) throws(PostgresError) {
        connection = try Self.connect(address.servers)
        // Notices such as "already exists, skipping" are no news to anybody.
        PQsetNoticeReceiver(connection, { _, _ in }, nil)
    }

    /// Connects to the first server that takes writes.
    static func connect(_ servers: [[String: String]]) throws(PostgresError) -> OpaquePointer {
        var failures: [String] = []
        for server in servers {
            let connection = server.withCStrings { PQconnectdbParams($0, $1, 0) }
            if let connection, PQstatus(connection) == CONNECTION_OK { return connection }
            failures.append(PostgresError.connectionLost(of: connection).text(of: server))
            PQfinish(connection)
        }
        throw .connectionLost(reason: failures.joined(separator: "; "))
    }

    deinit { PQfinish(connection) }

    /// The server's process, as it was told when the connection began.
    var serverProcess: Int32 { PQbackendPID(connection) }

    /// Runs statements without parameters; those outside BEGIN and COMMIT are one transaction.
    ///
    /// - Throws: The error of the first statement that fails.
    package func execute(_ sql: String) throws(PostgresError) {
        let result = PQexec(connection, sql)
        defer { PQclear(result) }
        try check(result)
    }

    /// Runs one statement with parameters (`$1`, `$2`, …); returns its rows in binary format.
    @discardableResult
    package func rows(
        _ sql: String, _ values: [PostgresValue] = []
    ) throws(PostgresError) -> [PostgresRow] {
        let result = values.withBinaryParameters { count, bytes, lengths, formats in
            PQexecParams(connection, sql, count, nil, bytes, lengths, formats, 1)
        }
        defer { PQclear(result) }
        try check(result)
        guard let result else { return [] }
        return (0..<PQntuples(result)).map { PostgresRow(result, row: $0) }
    }

    /// Runs `body` in a transaction, which is rolled back when it throws.
    package func transaction(
        _ body: () throws(PostgresError) -> Void
    ) throws(PostgresError) {
        try execute("BEGIN")
        do {
            try body()
        } catch {
            try? execute("ROLLBACK")
            throw error
        }
        try execute("COMMIT")
    }

    private func check(_ result: OpaquePointer?) throws(PostgresError) {
        switch PQresultStatus(result) {
        case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY: return
        default:
            guard result != nil, PQstatus(connection) == CONNECTION_OK else {
                let message = PQerrorMessage(connection).map { String(cString: $0) }
                throw .connectionLost(reason: message ?? "no memory")
            }
            throw PostgresError(result: result)
        }
    }
}
