import GatewayCore
import GatewayEngine
import GatewayPostgres
import Synchronization
import WidgetModel

/// The history of the fleet's log, by which cursors are judged on every node.
///
/// In a cursor, the ordinal of the epoch is the beginning of the log's id, and its nonce the tag of the
/// batch that has the sequence. Two histories that differ in one batch have other tags from there
/// on, so a cursor of a lost tail has a tag that the log does not have.
///
/// A cursor with another ordinal is of the store that was moved to this log, whose ordinals are
/// lower: the ledger of its epochs judges it. One that would prove a lost tail there proves nothing
/// about this log: everything is stale for its client, nothing more.
///
/// One of this log that names another batch than the log has there, or one that the log has not
/// reached, proves that the log lost its end.
package final class BatchHistory: CursorHistory {
    private struct State {
        var logID: UInt128?
        /// The ordinal of the log's cursors.
        var log: UInt32 { UInt32(truncatingIfNeeded: (logID ?? 0) >> 96) }
        var tags = BatchTags()
        var position: UInt64 = 0
        /// The epochs of the store that was moved to this log; the last one is the log.
        var ledger: EpochLedger
        /// The tags of batches that are older than those in ``tags``, as the log has them; 0 for a
        /// sequence that it does not have. Some of them are forgotten when there are too many.
        var found: [UInt64: UInt32] = [:]

        /// Returns the tag of a sequence; `nil` if the node does not know it. Nothing lies before the
        /// first batch.
        func tag(of sequence: UInt64) -> UInt32? {
            sequence == 0 ? 0 : tags.tag(of: Int64(clamping: sequence)) ?? found[sequence]
        }

        /// Whether the cursor is of this log, and the log has another batch in its place.
        func contradicts(_ cursor: Cursor) -> Bool {
            guard cursor.epoch.ordinal == log, cursor.sequence > 0, cursor.sequence <= position,
                let tag = tags.tag(of: Int64(clamping: cursor.sequence)) ?? found[cursor.sequence]
            else { return false }
            return tag != 0 && tag != cursor.epoch.nonce
        }

        /// Returns the sequence up to which the client has applied everything; `nil` if the cursor
        /// does not hold.
        func heldSequence(of cursor: Cursor) -> UInt64? {
            if cursor.epoch.ordinal == log {
                return tag(of: cursor.sequence) == cursor.epoch.nonce ? cursor.sequence : nil
            }
            guard case .holds(let sequence) = ledger.verdict(on: cursor, head: 0) else {
                return nil
            }
            return sequence
        }
    }

    /// The maximum number of tags that are kept of older batches.
    private static let foundMax = 65_536

    private let state: Mutex<State>
    private let foreign = Counter()
    private let source = Mutex<(any BatchSource)?>(nil)
    private let lostTail = Mutex<(@Sendable (Cursor) -> Void)?>(nil)

    /// Creates the history as of the batch from which a node reads the log.
    ///
    /// - Parameter tags: The tags of the batches up to it; `nil` if only its own is known.
    package init(_ start: LogStart = LogStart(), tags: BatchTags? = nil) {
        let epochs = start.epochs.map {
            EpochLedger.Epoch(
                id: EpochID(ordinal: $0.ordinal, nonce: $0.nonce),
                openedAt: UInt64(clamping: $0.openedAt),
                isVoid: $0.isVoid)
        }
        state = Mutex(State(ledger: EpochLedger(epochs)))
        state.withLock { state in
            state.tags = tags ?? BatchTags()
            if tags == nil { state.tags.append(start.position) }
            state.position = UInt64(start.position.last)
        }
    }

    /// The tags of the newest batches.
    var tags: BatchTags { state.withLock { $0.tags } }

    /// Reads from here on what the node does not have; nothing more for `nil`.
    package func use(_ source: (any BatchSource)?) { self.source.withLock { $0 = source } }

    /// Records the log's identity, before its first batch.
    package func note(logID: UInt128) {
        state.withLock { $0.logID = logID }
    }

    /// The log's identity; `nil` before it is recorded.
    package var logID: UInt128? { state.withLock { $0.logID } }

    /// Calls `body` with each cursor that the log contradicts.
    package func onLostTail(_ body: @escaping @Sendable (Cursor) -> Void) {
        lostTail.withLock { $0 = body }
    }

    /// Records a batch, before its entries are handed to anyone.
    package func note(_ position: LogPosition) {
        state.withLock { state in
            state.tags.append(position)
            state.position = UInt64(position.last)
        }
    }

    /// The newest batch that was recorded; `nil` before the first.
    var newest: BatchMark? {
        state.withLock { state in
            state.tags.newest.map { BatchMark(last: $0.last, tag: $0.tag) }
        }
    }

    /// Positions of all cursors belong to one epoch: a node that finds another history starts anew.
    package var epoch: EpochID { Self.epoch }

    private static let epoch = EpochID(ordinal: 0, nonce: 0)

    package var aheadCount: UInt64 { foreign.value }

    package func identity(of sequence: UInt64, in epoch: EpochID) -> EpochID {
        state.withLock { EpochID(ordinal: $0.log, nonce: $0.tag(of: sequence) ?? 0) }
    }

    package func isKnown(_ cursor: Cursor) -> Bool {
        state.withLock { state in
            if cursor.epoch.ordinal != state.log {
                return state.heldSequence(of: cursor).map { $0 <= state.position } ?? true
            }
            return cursor.sequence <= state.position && state.tag(of: cursor.sequence) != nil
        }
    }

    package func find(_ cursor: Cursor) async throws {
        guard !isKnown(cursor), let source = source.withLock({ $0 }) else { return }
        if cursor.sequence > state.withLock({ $0.position }) {
            // Another node is faster, or the tail that the cursor is from was lost.
            let head = try await source.barrier()
            if cursor.sequence > head, cursor.epoch.ordinal == state.withLock({ $0.log }) {
                lostTail.withLock { $0 }?(cursor)
            }
        }
        guard !isKnown(cursor), cursor.sequence <= state.withLock({ $0.position }) else { return }
        let tag = try await source.tag(of: cursor.sequence)
        state.withLock { state in
            if state.found.count >= Self.foundMax { state.found = [:] }
            state.found[cursor.sequence] = tag ?? 0
        }
    }

    package func judge(_ cursor: Cursor) -> JudgedCursor {
        let (isHeld, isContradicted) = state.withLock { state in
            (
                cursor.sequence <= state.position && state.heldSequence(of: cursor) != nil,
                state.contradicts(cursor)
            )
        }
        if !isHeld { foreign.increment() }
        if isContradicted { lostTail.withLock { $0 }?(cursor) }
        return JudgedCursor(
            point: isHeld ? .after(cursor.sequence) : .everything, epoch: Self.epoch)
    }
}

/// Reads what a node does not have in memory of the log.
package protocol BatchSource: Sendable {
    /// Returns the head once this node has applied everything that any node had answered for.
    func barrier() async throws -> UInt64

    /// Returns the tag of the batch that has a sequence; `nil` if the log does not have it any more.
    func tag(of sequence: UInt64) async throws -> UInt32?
}
