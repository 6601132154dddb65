import CPostgres
import Glibc

/// A connection that streams the changes of a logical slot. Each call blocks its thread for a
/// bounded time; after an error the connection is of no more use.
package final class ReplicationConnection {
    /// A batch of changes may wait for long until it is posted. Meanwhile the server cannot send,
    /// which must not look like a connection that broke.
    private static let patienceMilliseconds = 300_000

    // Sound: this object is not Sendable, so one thread uses it at a time, and it is freed once, in
    // `deinit`.
    private let connection: OpaquePointer

    /// Connects. Values have the same texts whatever the login's settings are.
    ///
    /// - Parameter servers: The servers, in the order in which they are tried.
    package init(_ servers: [[String: String]]) throws(PostgresError) {
        let patience = "\(Self.patienceMilliseconds)"
        connection = try PostgresAdministration.connect(
            servers.map { server in
                server.merging([
                    "replication": "database", "tcp_user_timeout": patience,
                    "options": "-c wal_sender_timeout=\(patience) -c tcp_user_timeout=\(patience)"
                        + " -c datestyle=ISO -c timezone=UTC -c intervalstyle=postgres"
                        + " -c extra_float_digits=1",
                ]) { $1 }
            })
    }

    deinit { PQfinish(connection) }

    /// Runs one query before the stream starts; returns its rows in text format.
    package func rows(_ sql: String) throws(PostgresError) -> [PostgresRow] {
        let result = PQexec(connection, sql)
        defer { PQclear(result) }
        guard PQresultStatus(result) == PGRES_TUPLES_OK, let result else {
            throw PostgresError(result: result)
        }
        return (0..<PQntuples(result)).map { PostgresRow(result, row: $0) }
    }

    /// Starts to stream what the slot's reader has not confirmed.
    ///
    /// - Parameter slot: The name of the slot and of the publication, lower-case letters, digits
    ///   and `_`.
    package func start(slot: String) throws(PostgresError) {
        let result = PQexec(
            connection,
            """
            START_REPLICATION SLOT "\(slot)" LOGICAL 0/0
            (proto_version '1', publication_names '"\(slot)"')
            """)
        defer { PQclear(result) }
        guard PQresultStatus(result) == PGRES_COPY_BOTH else { throw PostgresError(result: result) }
    }

    /// Returns the next message; `nil` if none comes in time.
    package func next(within milliseconds: Int64) throws(PostgresError) -> [UInt8]? {
        for isLast in [false, true] {
            var buffer: UnsafeMutablePointer<CChar>?
            let count = PQgetCopyData(connection, &buffer, 1)
            if count > 0, let buffer {
                defer { PQfreemem(buffer) }
                // Sound: the message has this length, and is copied before it is freed.
                return Array(UnsafeRawBufferPointer(start: buffer, count: Int(count)))
            }
            guard count == 0 else { throw ended() }
            guard !isLast else { break }
            var entry = pollfd(fd: PQsocket(connection), events: Int16(POLLIN), revents: 0)
            _ = poll(&entry, 1, Int32(clamping: milliseconds))
            guard entry.revents == 0 || PQconsumeInput(connection) == 1 else {
                throw .connectionLost(of: connection)
            }
        }
        return nil
    }

    /// Returns why the server sends no more.
    private func ended() -> PostgresError {
        let result = PQgetResult(connection)
        defer { PQclear(result) }
        return PQresultStatus(result) == PGRES_FATAL_ERROR
            ? PostgresError(result: result) : .connectionLost(reason: "the server ended the stream")
    }

    /// Tells the server that it may forget what is before a position; shows that this reader lives.
    package func confirm(_ position: UInt64) throws(PostgresError) {
        // Written, flushed and applied; then this reader's clock, which the server only shows, and
        // that no answer is wanted.
        let numbers = [position, position, position, 0].map(\.bigEndian)
        var message = [UInt8(ascii: "r")]
        // Sound: the bytes are copied within the closure that lends them.
        numbers.withUnsafeBytes { message.append(contentsOf: $0) }
        message.append(0)
        let isSent = message.withUnsafeBytes {
            PQputCopyData(
                connection, $0.baseAddress?.assumingMemoryBound(to: CChar.self),
                Int32(clamping: $0.count)) == 1
        }
        guard isSent, PQflush(connection) == 0 else { throw .connectionLost(of: connection) }
    }
}
