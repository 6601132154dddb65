import CPostgres
import Glibc

/// A connection to the server that takes writes. Each call blocks its thread for a bounded time.
///
/// A query outside BEGIN and COMMIT is a transaction of its own. After a connection error or a
/// missed deadline the owner drops the connection: neither a cancel request nor a timeout of the
/// server ends a commit that waits for a standby.
// Sound: one thread uses it at a time; its owner hands it over as a whole.
package final class ClusterConnection: @unchecked Sendable {
    /// A statement with the values of its parameters.
    package typealias Query = (sql: String, values: [PostgresValue])

    private let connection: OpaquePointer?
    /// The server, as in ``PostgresAddress/servers``.
    let server: [String: String]
    private let warning = Warning()

    /// The text of the last warning of the server.
    private final class Warning {
        var text: String?
    }

    /// Connects to the first server that takes writes.
    ///
    /// - Parameter milliseconds: The time for each server.
    /// - Throws: `PostgresError.connectionLost` when none does.
    package init(
        _ servers: [[String: String]], within milliseconds: Int64 = 2_000
    ) throws(PostgresError) {
        var opened: (connection: OpaquePointer?, server: [String: String])?
        var failures: [String] = []
        for server in servers {
            let candidate = server.withCStrings { PQconnectStartParams($0, $1, 0) }
            do throws(PostgresError) {
                try Self.open(candidate, until: Self.now + milliseconds)
                opened = (candidate, server)
                break
            } catch {
                failures.append(error.text(of: server))
                PQfinish(candidate)
            }
        }
        guard let opened else {
            throw .connectionLost(reason: failures.joined(separator: "; "))
        }
        (connection, server) = opened
        // Sound: `warning` outlives the connection, which `deinit` of this object ends first.
        PQsetNoticeReceiver(
            connection,
            { context, result in
                guard let context, let severity = gateway_pq_severity(result),
                    strcmp(severity, "WARNING") == 0
                else { return }
                Unmanaged<Warning>.fromOpaque(context).takeUnretainedValue().text =
                    gateway_pq_message(result).map { String(cString: $0) } ?? "no message"
            }, Unmanaged.passUnretained(warning).toOpaque())
        // Overrides the login's defaults. With the check interval, a call that waits for a lock
        // ends with its connection. Otherwise, while a commit waits for a standby, each attempt
        // would leave a session until the server takes no more.
        try rows(
            """
            SELECT set_config('synchronous_commit', 'on', false),
              set_config('default_transaction_isolation', 'read committed', false),
              set_config('statement_timeout', '0', false), set_config('lock_timeout', '0', false),
              set_config('client_connection_check_interval', '1s', false)
            """)
    }

    deinit { PQfinish(connection) }

    private static func open(
        _ connection: OpaquePointer?, until deadline: Int64
    ) throws(PostgresError) {
        var status = PGRES_POLLING_WRITING
        while PQstatus(connection) != CONNECTION_BAD {
            switch status {
            case PGRES_POLLING_OK:
                guard PQsetnonblocking(connection, 1) == 0, PQenterPipelineMode(connection) == 1
                else { throw lost(connection) }
                return
            case PGRES_POLLING_READING: try wait(connection, for: POLLIN, until: deadline)
            case PGRES_POLLING_WRITING: try wait(connection, for: POLLOUT, until: deadline)
            default: throw lost(connection)
            }
            status = PQconnectPoll(connection)
        }
        throw lost(connection)
    }

    /// Runs queries, sent together, in order; returns the rows of each.
    ///
    /// - Parameter milliseconds: The time for all.
    /// - Throws: The error of the first query that failed. The server may have run the queries
    ///   before it; after `deadline`, `warned` or `connectionLost` it may have run all of them.
    @discardableResult
    package func run(
        _ queries: [Query], within milliseconds: Int64 = 3_000
    ) throws(PostgresError) -> [[PostgresRow]] {
        let deadline = Self.now + milliseconds
        warning.text = nil
        for query in queries {
            let isSent = query.values.withBinaryParameters { count, values, lengths, formats in
                PQsendQueryParams(
                    connection, query.sql, count, nil, values, lengths, formats, 1)
            }
            guard isSent == 1, PQpipelineSync(connection) == 1 else {
                throw Self.lost(connection)
            }
        }
        var answers: [[PostgresRow]] = []
        var failure: PostgresError?
        for _ in queries {
            do throws(PostgresError) {
                answers.append(try readAnswer(until: deadline))
            } catch {
                switch error {
                case .connectionLost, .deadline: throw failure ?? error
                default: failure = failure ?? error
                }
            }
        }
        if let failure { throw failure }
        if let text = warning.text { throw .warned(message: text) }
        return answers
    }

    /// Runs one query; see ``run(_:within:)``.
    @discardableResult
    package func rows(
        _ sql: String, _ values: [PostgresValue] = [], within milliseconds: Int64 = 3_000
    ) throws(PostgresError) -> [PostgresRow] {
        try run([(sql, values)], within: milliseconds)[0]
    }

    /// Reads the results of one query and of the synchronization behind it.
    private func readAnswer(until deadline: Int64) throws(PostgresError) -> [PostgresRow] {
        var rows: [PostgresRow] = []
        var failure: PostgresError?
        while true {
            try awaitResult(until: deadline)
            // Nothing separates the results of a query from the synchronization.
            guard let result = PQgetResult(connection) else { continue }
            defer { PQclear(result) }
            switch PQresultStatus(result) {
            case PGRES_PIPELINE_SYNC:
                if let failure { throw failure }
                return rows
            case PGRES_COMMAND_OK, PGRES_EMPTY_QUERY: break
            case PGRES_TUPLES_OK:
                rows += (0..<PQntuples(result)).map { PostgresRow(result, row: $0) }
            default:
                guard PQstatus(connection) == CONNECTION_OK else { throw Self.lost(connection) }
                failure = failure ?? PostgresError(result: result)
                if case .connectionLost = failure { throw Self.lost(connection) }
            }
        }
    }

    private func awaitResult(until deadline: Int64) throws(PostgresError) {
        while true {
            let flushed = PQflush(connection)
            guard flushed >= 0 else { throw Self.lost(connection) }
            if flushed == 0, PQisBusy(connection) == 0 { return }
            try Self.wait(
                connection, for: POLLIN | (flushed == 0 ? 0 : POLLOUT), until: deadline)
            guard PQconsumeInput(connection) == 1 else { throw Self.lost(connection) }
        }
    }

    /// Waits until the server notifies, another descriptor is readable, or a time has passed.
    ///
    /// - Parameter descriptor: The other descriptor; none if negative.
    /// - Returns: Whether the server notified.
    /// - Throws: `PostgresError.connectionLost`.
    @discardableResult
    package func awaitNotification(
        or descriptor: Int32 = -1, within milliseconds: Int64
    ) throws(PostgresError) -> Bool {
        var entries = [
            pollfd(fd: PQsocket(connection), events: Int16(POLLIN), revents: 0),
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
        ]
        // One that came with an answer is read already.
        let wasNotified = takeNotifications()
        _ = poll(&entries, 2, wasNotified ? 0 : Int32(clamping: milliseconds))
        if entries[0].revents != 0, PQconsumeInput(connection) != 1 {
            throw Self.lost(connection)
        }
        return takeNotifications() || wasNotified
    }

    /// Returns whether there were any.
    private func takeNotifications() -> Bool {
        var isNotified = false
        while let notification = PQnotifies(connection) {
            PQfreemem(notification)
            isNotified = true
        }
        return isNotified
    }

    private static func wait(
        _ connection: OpaquePointer?, for events: Int32, until deadline: Int64
    ) throws(PostgresError) {
        var entry = pollfd(fd: PQsocket(connection), events: Int16(events), revents: 0)
        let left = deadline - now
        guard left > 0, entry.fd >= 0 else { throw .deadline }
        // An interrupted call is repeated by the caller, until the deadline.
        if poll(&entry, 1, Int32(clamping: left)) == 0 { throw .deadline }
    }

    private static func lost(_ connection: OpaquePointer?) -> PostgresError {
        .connectionLost(of: connection)
    }

    /// Monotonic milliseconds that go on while the machine sleeps (`CLOCK_BOOTTIME`): a lease must
    /// not outlive it.
    static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }
}
