import GatewayCore
import GatewaySigning
import GatewayStorage
import Logging
import WidgetModel

extension EpochHistory {
    /// Opens the epoch of this start. It voids all earlier ones if the data directory was copied or
    /// its log lost its end.
    convenience init(
        openingEpochIn store: SQLiteStore, clock: GatewayClock, logger: Logger
    ) throws {
        let loss = try store.suspectedLoss()
        switch loss {
        case nil: break
        case .copied:
            logger.error("the data directory is a copy: all existing cursors are void")
        case .shortened(let marked, let head):
            logger.error(
                "the end of the log was lost: all existing cursors are void",
                metadata: ["head": "\(head)", "was": "\(marked)"])
        }
        let now = clock.wallSeconds()
        let beyond = loss == nil ? 0 : EpochLedger.ordinalBeyondLoss(after: 0, now: now)
        let nonce = try secureRandom(count: 8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let opened = try store.openEpoch(
            id: nonce, atLeast: Int64(beyond), now: now * 1000, voidOlder: loss != nil)
        try store.renewMark()
        let epochs = try store.epochs().map {
            EpochLedger.Epoch(
                id: EpochID($0), openedAt: $0.openedAtSequence, isVoid: $0.isVoid)
        }
        self.init(
            EpochLedger(epochs), epoch: EpochID(opened), clock: clock, head: { store.head })
    }
}

extension EpochID {
    /// The name of a recorded epoch.
    init(_ row: EpochRow) {
        self.init(
            ordinal: UInt32(truncatingIfNeeded: row.ordinal),
            nonce: UInt32(truncatingIfNeeded: row.id))
    }
}
