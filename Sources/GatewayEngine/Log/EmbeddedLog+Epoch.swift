import GatewayCore
import GatewayStorage
import Logging
import WidgetModel

extension EmbeddedLog {
    /// The interval between two attempts to write an epoch to disk.
    private static let epochRetry = Duration.seconds(2)

    /// Opens an epoch that voids all earlier ones: writes it to disk and then announces it to every
    /// loop, which notifies every open stream that everything is stale.
    ///
    /// The epoch is announced even if the disk refuses it, because responses wait for it. If the
    /// program ends before the epoch is written, the next start does not know its cursors, which
    /// proves the loss again.
    ///
    /// - Parameter epochs: Issues cursors of the epoch once it is announced.
    func openEpoch(_ epoch: EpochID, epochs: EpochHistory, logger: Logger) {
        logger.error("a client has a cursor past the end of the log: all existing cursors are void")
        Task {
            var isAnnounced = false
            while true {
                do {
                    let announces = !isAnnounced
                    _ = try await store.write(cost: 256) { transaction in
                        try transaction.openEpochVoidingAll(
                            id: UInt64(epoch.nonce), ordinal: Int64(epoch.ordinal),
                            now: self.jobs.clock.wallMilliseconds(),
                            kept: self.store.configuration.epochsMax)
                        if announces {
                            transaction.afterCommit {
                                // Behind the entries of its commit.
                                self.jobs.applier.publish()
                                self.announce(epoch, epochs)
                            }
                        }
                    }
                    return
                } catch StoreError.closed {
                    return
                } catch {
                    logger.error(
                        "cannot write the new epoch", metadata: ["error": "\(error)"])
                }
                if !isAnnounced { announce(epoch, epochs) }
                isAnnounced = true
                try? await Task.sleep(for: Self.epochRetry)
            }
        }
    }

    private func announce(_ epoch: EpochID, _ epochs: EpochHistory) {
        jobs.registry.forgetHearing()
        writer.publisher.publish(epoch)
        epochs.handOut(epoch)
    }
}
