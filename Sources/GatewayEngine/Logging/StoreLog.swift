import Logging
import Synchronization

/// Logs when the store begins to reject writes, and when it accepts them again.
package final class StoreLog: Sendable {
    private let isFailing = Atomic(false)
    private let logger: Logger

    package init(_ logger: Logger) {
        self.logger = logger
    }

    /// Records that a write failed, with the reason for an operator.
    package func failed(_ reason: String) {
        guard !isFailing.exchange(true, ordering: .relaxed) else { return }
        logger.error("the store rejects writes", metadata: ["reason": "\(reason)"])
    }

    /// Records that a write succeeded. Called for each transaction.
    package func succeeded() {
        guard isFailing.load(ordering: .relaxed),
            isFailing.exchange(false, ordering: .relaxed)
        else { return }
        logger.notice("the store accepts writes again")
    }
}
