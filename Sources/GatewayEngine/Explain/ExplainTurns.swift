import GatewayCore
import Synchronization

/// Lets one caller explain at a time; the others wait, and apps take turns, so that no app can keep
/// the operators of another from an answer.
package final class ExplainTurns: Sendable {
    private struct State: Sendable {
        var isTaken = false
        var waiting: FairQueue<String, Caller>
    }

    private typealias Caller = CheckedContinuation<Void, any Error>

    /// The maximum number of waiting callers; one app may fill four fifths of it.
    package static let waitingMax = 16

    private let state: Mutex<State>

    init() {
        state = Mutex(
            State(waiting: FairQueue(limits: .init(count: Self.waitingMax, cost: .max, quantum: 1)))
        )
    }

    /// Waits for the caller's turn, which ends with ``end()``.
    ///
    /// - Throws: ``EngineError/busy(_:)`` if too many callers wait, in total or from this app.
    func begin(app: String) async throws {
        try await withCheckedThrowingContinuation { (caller: Caller) in
            let begins = state.withLock { state -> Bool? in
                guard state.isTaken else {
                    state.isTaken = true
                    return true
                }
                // The previous caller's `end()` resumes this one.
                return state.waiting.append(caller, for: app, cost: 1) == nil ? nil : false
            }
            switch begins {
            case nil: break
            case true?: caller.resume()
            case false?: caller.resume(throwing: EngineError.busy(.explanations))
            }
        }
    }

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
