import GatewayCore
import GatewayPostgres
import GatewayRecords
import Logging
import Synchronization
import WidgetModel

/// The end of a node whose log lost its own end, as after a restored backup.
///
/// The node voids all cursors first: a client whose cursor lies before the loss cannot know that it
/// was owed a change that is gone, so everything is stale for everybody. Its process ends then,
/// because it cannot take back what it told, and starts from what the servers have.
final class LostTail: Sendable {
    /// The time between two attempts to void the cursors.
    private static let retry = Duration.milliseconds(200)
    /// The time between two questions about cursors.
    private static let rest = Duration.seconds(10)
    /// The time after which the process ends all the same.
    private static let patience = Duration.seconds(30)

    private let address: PostgresAddress
    private let logger: Logger
    /// Ends the process with a reason.
    private let onFailure: @Sendable (String) -> Void
    private let hasBegun = Atomic(false)

    init(
        _ address: PostgresAddress, logger: Logger,
        onFailure: @escaping @Sendable (String) -> Void
    ) {
        self.address = address
        self.logger = logger
        self.onFailure = onFailure
    }

    /// Responds to the servers having another history than this node: voids the cursors, and ends the
    /// process.
    ///
    /// - Parameters:
    ///   - history: The history as this node knows it. A node that does not know the log's id yet has
    ///     served no client.
    ///   - reason: The evidence of the loss, in words.
    func respond(_ history: BatchHistory, _ reason: String) {
        logger.critical("the end of the fleet's log was lost", metadata: ["evidence": "\(reason)"])
        guard !hasBegun.exchange(true, ordering: .relaxed) else { return }
        Task {
            if let logID = history.logID, let newest = history.newest {
                _ = await void(logID, evidence: newest)
            }
            onFailure("the end of the fleet's log was lost: \(reason)")
        }
    }

    /// Responds to a cursor that the history does not have: if the servers do not have it either,
    /// voids all cursors and ends the process.
    func respond(to cursor: Cursor, _ history: BatchHistory) {
        guard let logID = history.logID, !hasBegun.exchange(true, ordering: .relaxed) else {
            return
        }
        let evidence = BatchMark(
            last: Int64(clamping: cursor.sequence), tag: cursor.epoch.nonce)
        Task {
            guard await void(logID, evidence: evidence) == .unproven else {
                return onFailure(
                    "the end of the fleet's log was lost: a client has a cursor at "
                        + "\(cursor.sequence) of another history")
            }
            // This node was behind. One question at a time, and not many, whatever clients send.
            try? await Task.sleep(for: Self.rest)
            hasBegun.store(false, ordering: .relaxed)
        }
    }

    private func void(_ logID: UInt128, evidence: BatchMark) async -> LostTailRound.Outcome? {
        guard let loop = try? PostgresLoop(name: "lost-tail") else { return nil }
        defer { loop.end() }
        let rounds = PostgresRounds<LostTailRound>(address, on: loop)
        let deadline = ContinuousClock.now + Self.patience
        while ContinuousClock.now < deadline {
            var random = SystemRandomNumberGenerator()
            let round = LostTailRound(logID, evidence: evidence, using: &random) { app in
                LogRecord(app: app, .reload(scope: Array(LogPayload.reload(.everything))))
            }
            let result = await withCheckedContinuation { continuation in
                rounds.run(round) { continuation.resume(returning: $0) }
            }
            switch result {
            case .success(let outcome):
                if outcome == .voided {
                    logger.critical(
                        "all cursors are void; every client is told to reload everything")
                }
                return outcome
            case .failure(let error):
                logger.warning(
                    "the cursors cannot be voided; trying again",
                    metadata: ["reason": "\(error)"])
            }
            try? await Task.sleep(for: Self.retry)
        }
        logger.critical(
            "the cursors could not be voided: post a reload of everything for each app")
        return nil
    }
}
