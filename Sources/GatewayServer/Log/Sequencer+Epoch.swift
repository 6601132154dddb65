import GatewayCore
import GatewayStorage
import Logging
import WidgetModel

extension Sequencer {
    /// Between two tries to write an epoch to disk.
    private static let epochRetry = Duration.seconds(2)

    /// Opens an epoch that voids all before it: writes it to disk, and then tells every loop, which
    /// tells every open stream that everything is stale.
    ///
    /// The epoch is announced even if the disk refuses it, because answers wait for it. If the
    /// program ends before the epoch is written, the next start does not know its cursors, which
    /// proves the loss once more.
    func openEpoch(_ epoch: EpochID, _ logger: Logger) {
        logger.error("a client knows changes that this log has lost: all cursors so far are void")
        Task {
            var isAnnounced = false
            while true {
                do {
                    let announces = !isAnnounced
                    _ = try await store.write(cost: 256) { transaction in
                        try transaction.openEpochVoidingAll(
                            id: UInt64(epoch.nonce), ordinal: Int64(epoch.ordinal),
                            now: self.desk.wallMilliseconds(),
                            kept: self.store.configuration.epochsMax)
                        if announces { transaction.afterCommit { self.announce(epoch) } }
                    }
                    return
                } catch StoreError.closed {
                    return
                } catch {
                    logger.error(
                        "the new epoch could not be written", metadata: ["error": "\(error)"])
                }
                if !isAnnounced { announce(epoch) }
                isAnnounced = true
                try? await Task.sleep(for: Self.epochRetry)
            }
        }
    }

    /// Tells everybody of a new epoch; its cursors are handed out from here on.
    private func announce(_ epoch: EpochID) {
        registry.forgetHearing()
        // Pushes switch to the epoch before any client can hold one of its cursors.
        push?.submit([.log(.epoch(epoch))])
        for loop in loops { loop.submit([.epoch(epoch)]) }
        desk.handOut(epoch)
    }
}
