import WidgetModel

/// The epochs of a log, and what a cursor of any of them is worth.
///
/// Each start of the log's writer opens an epoch at a recorded sequence. A cursor of an older epoch
/// holds up to that epoch's end; one beyond it, or of an epoch that never was, proves that the log
/// lost a tail which somebody had seen.
package struct EpochLedger: Sendable, Equatable {
    /// One epoch.
    package struct Epoch: Sendable, Equatable {
        /// Its name.
        package let id: EpochID
        /// The head of the log when it was opened; its own sequences lie above.
        package let openedAt: UInt64
        /// Whether a lost tail, or an operator after a restore, made its cursors worthless.
        package var isVoid: Bool

        /// An epoch.
        package init(id: EpochID, openedAt: UInt64, isVoid: Bool) {
            self.id = id
            self.openedAt = openedAt
            self.isVoid = isVoid
        }
    }

    /// The epochs whose cursors hold, oldest first; the last is the current one.
    package private(set) var epochs: [Epoch]

    /// The epochs as recorded, in order; the last one is current.
    ///
    /// Those up to the last void one are not needed: ordinals of later epochs are higher than any
    /// that a lost tail may have used, so whatever is older is void, known or not.
    package init(_ epochs: [Epoch]) {
        let start = epochs.lastIndex(where: \.isVoid).map { $0 + 1 } ?? 0
        self.epochs = Array(epochs[start...])
    }

    /// The epoch in which the log is being written.
    package var current: Epoch? { epochs.last }

    /// What a cursor is worth.
    package enum Verdict: Sendable, Equatable {
        /// It holds: everything up to its sequence was applied.
        case holds(UInt64)
        /// It is void, or older than what is remembered: everything is stale for it.
        case isVoid
        /// It proves a lost tail: everything is stale for it, and so it is for everybody who came
        /// before it: all epochs so far are to be voided, the running one too.
        case provesLostTail
    }

    /// Judges a cursor that carries this gateway's seal.
    ///
    /// - Parameter head: The last sequence on disk.
    package func verdict(on cursor: Cursor, head: UInt64) -> Verdict {
        guard let oldest = epochs.first, let current else { return .isVoid }
        if cursor.epoch.ordinal < oldest.id.ordinal { return .isVoid }
        guard let index = epochs.firstIndex(where: { $0.id == cursor.epoch }) else {
            return .provesLostTail
        }
        let end = epochs[index].id == current.id ? head : epochs[index + 1].openedAt
        return cursor.sequence <= end ? .holds(cursor.sequence) : .provesLostTail
    }

    /// Voids all epochs, because a cursor proved a lost tail, and begins another.
    ///
    /// One proof leads to one new epoch: the other cursors of the same lost tail carry ordinals
    /// below its own and prove nothing any more, however often they are shown and across restarts.
    ///
    /// - Parameters:
    ///   - cursor: The cursor that proved the loss.
    ///   - now: Seconds since 1970.
    /// - Returns: The name of the new epoch, which is the current one from here on.
    package mutating func replaceAll(
        provedBy cursor: Cursor, head: UInt64, nonce: UInt32, now: Int64
    ) -> EpochID {
        let highest = max(cursor.epoch.ordinal, current?.id.ordinal ?? 0)
        let id = EpochID(ordinal: Self.ordinalBeyondLoss(after: highest, now: now), nonce: nonce)
        epochs = [Epoch(id: id, openedAt: head, isVoid: false)]
        return id
    }

    /// Returns the ordinal of an epoch that voids all before it: higher than the last one's, and
    /// than those of starts whose record a restore took away. There are fewer starts than seconds,
    /// so the time, in seconds since 1970, is beyond all of them.
    package static func ordinalBeyondLoss(after last: UInt32, now: Int64) -> UInt32 {
        // Later starts need ordinals, too.
        max(last &+ 1, UInt32(clamping: min(max(now, 0), Int64(UInt32.max) - 1_000_000)))
    }
}

/// Seals the cursors a gateway hands out, so that nobody else can make one that is believed: a
/// cursor of an unknown epoch voids others' cursors, and that must not be had for the asking.
package struct CursorSeal: Sendable {
    private let hash: SipHash

    /// Seals under a secret of the data directory. Copies of the directory share it, so that the
    /// cursors of a lost tail are still recognised as real.
    package init(_ hash: SipHash) {
        self.hash = hash
    }

    /// A sealed cursor.
    package func cursor(_ epoch: EpochID, _ sequence: UInt64) -> Cursor {
        Cursor(epoch: epoch, sequence: sequence, tag: tag(epoch, sequence))
    }

    /// Whether the cursor was sealed here.
    package func isGenuine(_ cursor: Cursor) -> Bool {
        cursor.tag == tag(cursor.epoch, cursor.sequence)
    }

    private func tag(_ epoch: EpochID, _ sequence: UInt64) -> UInt64 {
        hash(2, UInt64(epoch.ordinal) << 32 | UInt64(epoch.nonce), sequence)
    }
}
