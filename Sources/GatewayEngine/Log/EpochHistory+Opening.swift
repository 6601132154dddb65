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
        _ = try store.openEpoch(
            id: nonce, atLeast: Int64(beyond), now: now * 1000, voidOlder: loss != nil)
        try store.renewMark()
        self.init(try store.ledger(), clock: clock, head: { store.head })
    }

    /// Continues a store's epochs in a gateway of several, whose leader opens new ones.
    convenience init(
        following store: SQLiteStore, clock: GatewayClock, leader: any LogLeader
    ) throws {
        self.init(
            try store.ledger(), clock: clock, head: { store.head },
            find: {
                // Other nodes may tell clients of an append before it is in force at the leader.
                if leader.isHere {
                    do {
                        _ = try await store.writeLocally(cost: 0) { _ in }
                    } catch  where leader.isHere {
                        throw EngineError.cluster(.noAnswer)
                    } catch {}
                }
                try await leader.barrier()
            }, report: leader.reportLoss)
    }
}

extension SQLiteStore {
    fileprivate func ledger() throws -> EpochLedger {
        EpochLedger(try epochs().map { EpochLedger.Epoch($0) })
    }
}

extension EpochLedger.Epoch {
    init(_ row: EpochRow) {
        self.init(
            id: EpochID(
                ordinal: UInt32(truncatingIfNeeded: row.ordinal),
                nonce: UInt32(truncatingIfNeeded: row.id)),
            openedAt: row.openedAtSequence, isVoid: row.isVoid)
    }
}
