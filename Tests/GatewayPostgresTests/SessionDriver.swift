import ClusterTestSupport
import Foundation
import GatewayPostgres
import GatewayTestSupport

/// Collects the events of a session, turned by hand.
final class SessionDriver {
    let session: PostgresSession
    private(set) var events: [PostgresSession.Event] = []
    /// The most rows that one turn delivered.
    private(set) var mostRowsAtOnce = 0

    init(_ address: PostgresAddress, preparing statements: [PostgresStatement]) {
        session = PostgresSession(address, server: 0, preparing: statements)
    }

    /// Waits for the socket until `body` returns a value from the events so far.
    func wait<Value>(_ body: ([PostgresSession.Event]) -> Value?) throws -> Value {
        let deadline = ContinuousClock.now + Patience.duration
        while ContinuousClock.now < deadline {
            if let value = body(events) { return value }
            var rowCount = 0
            session.proceed { event in
                events.append(event)
                if case .row = event { rowCount += 1 }
            }
            mostRowsAtOnce = max(mostRowsAtOnce, rowCount)
            guard let (descriptor, interest) = session.interest else { continue }
            var one = pollfd(fd: descriptor, events: interest, revents: 0)
            _ = poll(&one, 1, 50)
        }
        throw TestFailure("no such event; the last is \(events.last.map { "\($0)" } ?? "none")")
    }

    /// Waits until the session is open.
    func open() throws {
        _ = try wait { events in
            events.contains { if case .opened = $0 { true } else { false } } ? true : nil
        }
        events = []
    }

    /// Sends queries and returns their answers.
    func answers(
        _ queries: PostgresQuery...
    ) throws -> [Result<[PostgresRow], PostgresError>] {
        events = []
        session.send(queries)
        return try wait { events in
            let answers = events.compactMap { event -> Result<[PostgresRow], PostgresError>? in
                if case .answered(let answer) = event { answer } else { nil }
            }
            return answers.count == queries.count ? answers : nil
        }
    }

    /// The error that ended the session, waited for.
    func loss() throws -> PostgresError {
        try wait { events in
            if case .lost(let error) = events.last { error } else { nil }
        }
    }
}
