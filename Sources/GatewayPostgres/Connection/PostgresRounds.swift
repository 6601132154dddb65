import DequeModule

/// A connection for work beside the log, such as snapshots: it runs one round after the other.
package final class PostgresRounds<Round: PostgresRound>: Sendable {
    /// Receives the outcome of a round, on the thread of the loop.
    package typealias Completion = @Sendable (Result<Round.Outcome, PostgresError>) -> Void

    private let inbox: CommandInbox<RoundMember<Round>.Run>
    private let patience: Int64?

    /// Adds a connection to a loop; it is opened by the first round, and again by the first one
    /// after a failure.
    ///
    /// - Parameters:
    ///   - address: The servers, with the login of the node.
    ///   - deadline: The longest time to an answer, milliseconds.
    ///   - patience: The time after which a round is not begun any more, milliseconds: those that
    ///     wait behind one without an answer fail with it. `nil` for rounds that wait for ever.
    package init(
        _ address: PostgresAddress, deadline: Int64 = 3_000, patience: Int64? = nil,
        on loop: PostgresLoop
    ) {
        let inbox = CommandInbox<RoundMember<Round>.Run>(loop)
        self.inbox = inbox
        self.patience = patience
        loop.add { RoundMember(address, inbox, deadline: deadline) }
    }

    /// Runs a round once those before it are over.
    package func run(_ round: Round, complete: @escaping Completion) {
        inbox.append(
            .init(
                round: round, complete: complete,
                end: patience.map { PostgresLoop.now + $0 } ?? .max))
    }
}

/// Acts for the rounds on the thread of the loop.
private final class RoundMember<Round: PostgresRound>: PostgresLoop.Member {
    /// A round with its completion.
    struct Run: Sendable {
        var round: Round
        let complete: PostgresRounds<Round>.Completion
        /// The time from which on it is not begun.
        let end: Int64
    }

    private let inbox: CommandInbox<Run>
    private let silenceMax: Int64
    private var runs: Deque<Run> = []
    private var current: Run?
    private let session: RequestSession<Round.Request>
    private var isOpen = false
    private var unanswered = 0
    private var server = 0
    private var deadline: Int64?

    init(_ address: PostgresAddress, _ inbox: CommandInbox<Run>, deadline: Int64) {
        session = RequestSession(address)
        self.inbox = inbox
        silenceMax = deadline
    }

    deinit {
        runs.append(contentsOf: inbox.removeAll())
        for run in [current].compactMap({ $0 }) + runs {
            run.complete(.failure(.connectionLost(reason: "the node stops")))
        }
    }

    var interest: (descriptor: Int32, events: Int16)? { session.interest }

    var nextTurn: Int64? { session.nextTurn(or: deadline) }

    func turn(at now: Int64) {
        runs.append(contentsOf: inbox.removeAll())
        session.proceed { receive($0, at: now) }
        if let deadline, deadline <= now { fail(.deadline) }
        while current == nil, let next = runs.popFirst() {
            guard now < next.end else {
                next.complete(.failure(.deadline))
                continue
            }
            current = next
            if isOpen {
                begin(at: now)
            } else {
                session.connect(to: server)
                deadline = now + silenceMax
            }
        }
    }

    private func receive(_ event: RequestSession<Round.Request>.Event, at now: Int64) {
        switch event {
        case .connected:
            isOpen = true
            begin(at: now)
        case .disconnected(let error): fail(error)
        case .answered(let answer):
            unanswered -= 1
            deadline = unanswered == 0 ? nil : now + silenceMax
            guard let step = current?.round.receive(answer) else { return }
            perform(step, at: now)
        case .row, .notified: return
        }
    }

    private func begin(at now: Int64) {
        deadline = nil
        guard let step = current?.round.begin() else { return }
        perform(step, at: now)
    }

    private func perform(_ step: RoundStep<Round.Request, Round.Outcome>, at now: Int64) {
        switch step {
        case .send(let requests):
            guard !requests.isEmpty else { return }
            unanswered += requests.count
            deadline = now + silenceMax
            session.send(requests)
        case .end(let outcome):
            let run = current
            current = nil
            run?.complete(.success(outcome))
        case .fail(let error): fail(error)
        }
    }

    /// Gives the connection up; the next round tries the next server.
    private func fail(_ error: PostgresError) {
        session.disconnect()
        isOpen = false
        unanswered = 0
        deadline = nil
        server += 1
        let run = current
        current = nil
        run?.complete(.failure(error))
    }
}
