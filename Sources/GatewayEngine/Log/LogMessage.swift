import GatewayCore
import WidgetModel

/// A message of the log's writer to the event loops and to the push loop, in commit order.
package enum LogMessage: Sendable {
    /// The next entry of the log.
    case entry(LogEntry)
    case registered(ClientRecord, app: String, receipts: ShardReceipts)
    /// A client confirmed recommendation sets.
    case confirmed(ClientRecord, app: String, receipts: ShardReceipts)
    case removed(ClientKey)
    /// Cursors of all epochs before this one are void.
    case epoch(EpochID)
    /// The versions of an app's keys up to an entry before this message, for all loops to share.
    case sealed(SealedVersions)
    /// Follows all entries of a traced change.
    case traced(TracedChange)
}
