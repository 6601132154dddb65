import GatewayCore
import GatewayStorage
import Logging
import WidgetModel

extension EngineLog {
    /// The interval between two attempts to write an epoch to disk.
    private static let epochRetry = Duration.seconds(2)

    /// Opens an epoch that voids all earlier ones: writes it to disk and then announces it to every
    /// loop, which notifies every open stream that everything is stale.
    ///
    /// The epoch is announced even if the disk refuses it, because responses wait for it. If the
    /// program ends before the epoch is written, the next start does not know its cursors, which
    /// proves the loss again.
    func openEpoch(_ epoch: EpochID, logger: Logger) {
        logger.error("a client has a cursor past the end of the log: all existing cursors are void")
        Task {
            while true {
                do {
                    _ = try await store.write(cost: 256) {
                        try self.openEpoch(epoch, voidsOlder: true, &$0)
                    }
                    return
                } catch StoreError.closed {
                    return
                } catch {
                    logger.error(
                        "cannot write the new epoch", metadata: ["error": "\(error)"])
                }
                // Not by `apply`, which only the writer's thread may call.
                applier.open(
                    EpochLedger.Epoch(id: epoch, openedAt: store.head, isVoid: false),
                    voidsOlder: true)
                try? await Task.sleep(for: Self.epochRetry)
            }
        }
    }
}
