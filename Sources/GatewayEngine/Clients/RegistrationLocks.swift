import GatewayCore
import Synchronization

/// Lets one task at a time replace the registration of a client, in order of arrival, so that none
/// prepares a replacement in vain.
package final class RegistrationLocks: Sendable {
    /// The maximum number of tasks that wait for one client.
    package static let waitingMax = 64

    /// The tasks that wait, for each client whose registration is being replaced.
    private let waiting = Mutex<[ClientKey: [CheckedContinuation<Bool, Never>]]>([:])

    func waitingCount(_ key: ClientKey) -> Int { waiting.withLock { $0[key]?.count ?? 0 } }

    /// Waits for exclusive access to a client, which lasts until ``unlock(_:)``; returns `false` at
    /// once if too many tasks wait already.
    func lock(_ key: ClientKey) async -> Bool {
        await withCheckedContinuation { continuation in
            let answer = waiting.withLock { waiting -> Bool? in
                guard let others = waiting[key] else {
                    waiting[key] = []
                    return true
                }
                guard others.count < Self.waitingMax else { return false }
                waiting[key, default: []].append(continuation)
                return nil
            }
            if let answer { continuation.resume(returning: answer) }
        }
    }

    /// Hands the client over to the task that has waited longest.
    func unlock(_ key: ClientKey) {
        let next = waiting.withLock { waiting -> CheckedContinuation<Bool, Never>? in
            guard waiting[key]?.isEmpty == false else {
                waiting[key] = nil
                return nil
            }
            return waiting[key]?.removeFirst()
        }
        next?.resume(returning: true)
    }
}
