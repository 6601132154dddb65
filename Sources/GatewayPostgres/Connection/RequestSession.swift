import DequeModule

/// The session of a member of the loop, if it has one, with the requests that are not answered.
final class RequestSession<Request: PostgresRequest> {
    enum Event {
        /// It is open.
        case connected
        /// It ended or could not be opened.
        case disconnected(PostgresError)
        /// The first unanswered request ended.
        case answered(Result<Request.Answer, PostgresError>)
        /// A row of the answer under way.
        case row(PostgresRow)
        /// A notification came.
        case notified(byServerProcess: Int32)
    }

    private let address: PostgresAddress
    private var session: PostgresSession?
    private var inFlight: Deque<Request> = []

    init(_ address: PostgresAddress) { self.address = address }

    var interest: (descriptor: Int32, events: Int16)? { session?.interest }

    /// Returns the time of the next turn: at once for a session that has failed, which has no
    /// descriptor and says so when it is asked; else `tick`.
    func nextTurn(or tick: Int64?) -> Int64? {
        session != nil && session?.interest == nil ? PostgresLoop.now : tick
    }

    /// Connects to the server with this index, modulo their number.
    func connect(to server: Int) {
        session = PostgresSession(address, server: server, preparing: Request.statements)
        inFlight = []
    }

    /// Closes the session; what is unanswered is not reported.
    func disconnect() {
        session = nil
        inFlight = []
    }

    /// Sends requests in one write.
    func send(_ requests: [Request]) {
        inFlight.append(contentsOf: requests)
        session?.send(requests.map(\.query))
    }

    /// Reads and writes what is possible without waiting.
    ///
    /// - Parameter handle: Called with each event, in order. It may call this object.
    func proceed(_ handle: (Event) -> Void) {
        var events: [PostgresSession.Event] = []
        session?.proceed { events.append($0) }
        for event in events {
            switch event {
            case .opened: handle(.connected)
            case .lost(let error):
                disconnect()
                handle(.disconnected(error))
            case .answered(let result):
                // None is in flight once the session was given up.
                guard let request = inFlight.popFirst() else { continue }
                handle(
                    .answered(
                        result.flatMap { rows in
                            Result { () throws(PostgresError) in try request.answer(rows) }
                        }))
            case .row(let row): handle(.row(row))
            case .notified(let process): handle(.notified(byServerProcess: process))
            }
        }
    }
}
