import CPostgres
import Glibc

/// A connection to one server that never blocks: binary parameters and results, in pipeline mode.
///
/// It belongs to one thread, whose poll loop calls ``proceed(_:)`` when the socket is ready. Every
/// query is a transaction of its own and is answered in order. A session has no timeout: its owner
/// closes it by dropping it, because neither a cancel request nor a server-side timeout ends a
/// commit that waits for a standby.
package final class PostgresSession {
    /// An event of the session, in order.
    package enum Event: Sendable {
        /// The connection is open and every statement is prepared.
        case opened
        /// A row of the query that is being answered, if its statement is streamed.
        case row(PostgresRow)
        /// The next query in order has ended, with its rows unless they were streamed.
        case answered(Result<[PostgresRow], PostgresError>)
        /// A notification of a channel that this session listens on.
        case notified(byServerProcess: Int32)
        /// The connection ended; no event follows. Unanswered queries have an unknown outcome.
        case lost(PostgresError)
    }

    private enum Phase {
        case connecting(PostgresPollingStatusType)
        case preparing(unanswered: Int)
        case open
        case lost
    }

    // Sound: used by the thread that owns the session only, and freed once, in `deinit`.
    private let connection: OpaquePointer?
    private let statements: [PostgresStatement]
    private let notices = NoticeRecord()
    private var phase: Phase
    private var inFlight: ArraySlice<PostgresStatement> = []
    /// The rows of the query that is being answered.
    private var rows: [PostgresRow] = []
    private var failure: PostgresError?
    private var hasUnsentBytes = false

    /// Begins to connect; an impossible connection is reported by the first ``proceed(_:)``.
    ///
    /// Looking up a host's name blocks; give addresses, or names that the system resolves itself.
    ///
    /// - Parameters:
    ///   - address: The servers.
    ///   - server: The index of the server, modulo their number.
    ///   - statements: The statements to prepare.
    package init(_ address: PostgresAddress, server: Int, preparing statements: [PostgresStatement])
    {
        let options = address.servers[server % address.servers.count]
        self.statements = statements
        connection = options.withCStrings { PQconnectStartParams($0, $1, 0) }
        phase = .connecting(PGRES_POLLING_WRITING)
        if PQstatus(connection) == CONNECTION_BAD { phase = .connecting(PGRES_POLLING_FAILED) }
        // Sound: `notices` outlives the connection, which `deinit` of this object ends first.
        PQsetNoticeReceiver(
            connection,
            { context, result in
                guard let context, let result else { return }
                Unmanaged<NoticeRecord>.fromOpaque(context).takeUnretainedValue().record(result)
            }, Unmanaged.passUnretained(notices).toOpaque())
    }

    deinit { PQfinish(connection) }

    /// The identifier of the server's process, which notifications carry as their sender.
    package var serverProcess: Int32 { PQbackendPID(connection) }

    /// The descriptor to wait for and the events of poll(2); `nil` once the connection is lost or
    /// before it has a socket.
    package var interest: (descriptor: Int32, events: Int16)? {
        let descriptor = PQsocket(connection)
        guard descriptor >= 0 else { return nil }
        switch phase {
        case .lost, .connecting(PGRES_POLLING_FAILED): return nil
        case .connecting(PGRES_POLLING_READING): return (descriptor, Int16(POLLIN))
        case .connecting: return (descriptor, Int16(POLLOUT))
        case .preparing, .open:
            return (descriptor, Int16(POLLIN) | (hasUnsentBytes ? Int16(POLLOUT) : 0))
        }
    }

    /// Queues queries and writes as much as the socket takes. Only for an open session.
    ///
    /// The next ``proceed(_:)`` reports a failure of this call.
    package func send(_ queries: [PostgresQuery]) {
        for query in queries {
            let isFirst = inFlight.isEmpty
            guard send(query) else { break }
            inFlight.append(query.statement)
            if isFirst { beginAnswer() }
        }
        flush()
    }

    private func send(_ query: PostgresQuery) -> Bool {
        let isSent = query.values.withBinaryParameters { count, values, lengths, formats in
            PQsendQueryPrepared(
                connection, query.statement.name, count, values, lengths, formats, 1)
        }
        return isSent == 1 && PQpipelineSync(connection) == 1
    }

    /// Reads and writes what is possible without waiting.
    ///
    /// - Parameter handle: Called with each event, in order. It must not call the session.
    package func proceed(_ handle: (Event) -> Void) {
        switch phase {
        case .lost: return
        case .connecting(let status): connect(status, handle)
        case .preparing, .open: exchange(handle)
        }
    }

    private func connect(
        _ status: PostgresPollingStatusType, _ handle: (Event) -> Void
    ) {
        guard status != PGRES_POLLING_FAILED else { return lose(handle) }
        let next = PQconnectPoll(connection)
        guard next == PGRES_POLLING_OK else {
            phase = .connecting(next)
            if next == PGRES_POLLING_FAILED { lose(handle) }
            return
        }
        guard PQsetnonblocking(connection, 1) == 0, PQenterPipelineMode(connection) == 1 else {
            return lose(handle)
        }
        phase = .preparing(unanswered: statements.count)
        for statement in statements {
            guard PQsendPrepare(connection, statement.name, statement.sql, 0, nil) == 1,
                PQpipelineSync(connection) == 1
            else { return lose(handle) }
            inFlight.append(statement)
        }
        if statements.isEmpty {
            phase = .open
            handle(.opened)
        }
        flush()
    }

    private func exchange(_ handle: (Event) -> Void) {
        flush()
        let isReadable = PQconsumeInput(connection) == 1
        var isBetween = false
        while !inFlight.isEmpty, PQisBusy(connection) == 0 {
            guard let result = PQgetResult(connection) else {
                // The end of one query's results; the next call has the synchronisation point. A
                // second end is that of a connection that answers nothing more.
                if isBetween { break }
                isBetween = true
                continue
            }
            isBetween = false
            defer { PQclear(result) }
            receive(result, handle)
        }
        while let notification = PQnotifies(connection) {
            handle(.notified(byServerProcess: notification.pointee.be_pid))
            PQfreemem(notification)
        }
        if !isReadable || PQstatus(connection) == CONNECTION_BAD { lose(handle) }
    }

    private func receive(_ result: OpaquePointer, _ handle: (Event) -> Void) {
        switch PQresultStatus(result) {
        case PGRES_SINGLE_TUPLE: handle(.row(PostgresRow(result, row: 0)))
        case PGRES_TUPLES_OK:
            for row in 0..<PQntuples(result) {
                let row = PostgresRow(result, row: row)
                if inFlight.first?.isStreamed == true {
                    handle(.row(row))
                } else {
                    rows.append(row)
                }
            }
        case PGRES_COMMAND_OK: break
        case PGRES_PIPELINE_SYNC: endAnswer(handle)
        default: failure = failure ?? PostgresError(result: result)
        }
    }

    /// Ends the answer of the first query in flight.
    private func endAnswer(_ handle: (Event) -> Void) {
        inFlight = inFlight.dropFirst()
        let warning = notices.removeWarning()
        let error = failure ?? warning.map { .warned(message: $0) }
        let answer = rows
        (rows, failure) = ([], nil)
        switch phase {
        case .open:
            beginAnswer()
            handle(.answered(error.map { .failure($0) } ?? .success(answer)))
        case .preparing(let unanswered):
            if let error {
                phase = .lost
                handle(.lost(error))
            } else if unanswered == 1 {
                phase = .open
                handle(.opened)
            } else {
                phase = .preparing(unanswered: unanswered - 1)
            }
        case .connecting, .lost: break
        }
    }

    /// Asks for single rows where the query that is answered next wants them. Where libpq does not
    /// do it the rows come together, which `receive` accepts.
    private func beginAnswer() {
        if inFlight.first?.isStreamed == true { _ = PQsetSingleRowMode(connection) }
    }

    private func flush() { hasUnsentBytes = PQflush(connection) == 1 }

    private func lose(_ handle: (Event) -> Void) {
        if case .lost = phase { return }
        phase = .lost
        // The answer to a query often has the reason for the end of the session.
        let text = PQerrorMessage(connection).map { String(cString: $0) } ?? ""
        // Lines that begin with a tab explain the one before.
        let line =
            text.split(separator: "\n").last { !$0.hasPrefix("\t") }
            .map(String.init) ?? "the connection ended"
        handle(.lost(failure ?? .connectionLost(reason: line)))
    }
}

/// The last warning that the server sent.
private final class NoticeRecord {
    private var warning: String?

    func record(_ notice: OpaquePointer) {
        guard let severity = gateway_pq_severity(notice), strcmp(severity, "WARNING") == 0 else {
            return
        }
        warning = gateway_pq_message(notice).map { String(cString: $0) } ?? "no message"
    }

    func removeWarning() -> String? {
        defer { warning = nil }
        return warning
    }
}

extension [String: String] {
    /// Lends keys and values as two arrays of C strings, each ended by a null.
    package func withCStrings<Result>(
        _ body: ([UnsafePointer<CChar>?], [UnsafePointer<CChar>?]) -> Result
    ) -> Result {
        // Sound: the copies live until `body` has returned.
        let keys = self.keys.map { strdup($0) }
        let values = self.values.map { strdup($0) }
        defer { for copy in keys + values { free(copy) } }
        return body(
            keys.map { UnsafePointer($0) } + [nil], values.map { UnsafePointer($0) } + [nil])
    }
}
