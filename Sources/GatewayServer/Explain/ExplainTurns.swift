import GatewayCore
import Synchronization
import WidgetModel

/// Lets one caller explain at a time; the others wait, and apps take turns, so that no app can keep
/// the operators of another from an answer.
final class ExplainTurns: Sendable {
    private struct State: Sendable {
        var isTaken = false
        var waiting: FairQueue<String, Caller>
    }

    private enum Outcome {
        case begins, waits, refused
    }

    private typealias Caller = CheckedContinuation<Void, any Error>

    /// Callers that wait at most; one app may fill four fifths of it.
    static let waitingMax = 16

    private let state: Mutex<State>

    init() {
        state = Mutex(
            State(waiting: FairQueue(limits: .init(count: Self.waitingMax, cost: .max, quantum: 1)))
        )
    }

    /// Waits for the turn; ``end()`` gives it back.
    ///
    /// - Throws: 503 when too many callers wait, of all apps or of this one.
    func begin(app: String) async throws {
        try await withCheckedThrowingContinuation { (caller: Caller) in
            let outcome = state.withLock { state -> Outcome in
                guard state.isTaken else {
                    state.isTaken = true
                    return .begins
                }
                let refusal = state.waiting.append(caller, for: app, cost: 1)
                return refusal == nil ? .waits : .refused
            }
            switch outcome {
            case .begins: caller.resume()
            case .waits: break
            case .refused:
                caller.resume(
                    throwing: Problem.unavailable(
                        "Too many requests wait to be explained; ask again in 5 s.",
                        retryAfter: 5))
            }
        }
    }

    /// The number of callers that wait.
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Gives the turn to the next caller.
    func end() {
        let next = state.withLock { state in
            let next = state.waiting.popFirst()
            state.isTaken = next != nil
            return next
        }
        next?.element.resume()
    }
}
