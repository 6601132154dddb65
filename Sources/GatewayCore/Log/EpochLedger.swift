import WidgetModel

/// The epochs of a log, and the validity of cursors from any of them.
///
/// Each start of the log's writer opens an epoch at a recorded sequence. A cursor of an older epoch
/// is valid up to that epoch's end. A cursor beyond the end, or of an unknown epoch, proves that
/// the log lost a tail which a client had already seen.
package struct EpochLedger: Sendable, Equatable {
    package struct Epoch: Sendable, Equatable {
        package let id: EpochID
        /// The head of the log when the epoch was opened; the epoch's own sequences are above it.
        package let openedAt: UInt64
        /// Whether a lost tail, or an operator after a restore, made its cursors invalid.
        package var isVoid: Bool

        package init(id: EpochID, openedAt: UInt64, isVoid: Bool) {
            self.id = id
            self.openedAt = openedAt
            self.isVoid = isVoid
        }
    }

    /// The epochs with valid cursors, oldest first; the last is the current one.
    package private(set) var epochs: [Epoch]

    /// Creates a ledger from the recorded epochs, in order; the last one is current.
    ///
    /// The epochs up to the last void one are dropped: a later epoch has a higher ordinal than any
    /// epoch of a lost tail, so every older cursor is void, known or not.
    package init(_ epochs: [Epoch]) {
        let start = epochs.lastIndex(where: \.isVoid).map { $0 + 1 } ?? 0
        self.epochs = Array(epochs[start...])
    }

    /// The epoch that the log is being written in.
    package var current: Epoch? { epochs.last }

    /// Begins an epoch, which is then the current one.
    ///
    /// - Parameter voidsOlder: Whether the cursors of all others are void.
    package mutating func open(_ epoch: Epoch, voidsOlder: Bool) {
        if voidsOlder { epochs = [] }
        epochs.append(epoch)
    }

    /// The validity of a cursor.
    package enum Verdict: Sendable, Equatable {
        /// The cursor is valid: everything up to its sequence was applied.
        case holds(UInt64)
        /// The cursor is void, or older than the known epochs: everything is stale for its client.
        case isVoid
        /// The cursor proves a lost tail: everything is stale for its client and for all earlier
        /// clients. All epochs including the current one must be voided.
        case provesLostTail
    }

    /// Returns the validity of a cursor that carries this gateway's seal.
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

    /// Voids all epochs, because a cursor proved a lost tail, and begins a new one.
    ///
    /// One proof leads to one new epoch. The other cursors of the same lost tail have lower
    /// ordinals than the new epoch, so they prove nothing, however often they are presented and
    /// across restarts.
    ///
    /// - Parameters:
    ///   - cursor: The cursor that proved the loss.
    ///   - now: The time in seconds since 1970.
    /// - Returns: The identity of the new epoch, which is then the current one.
    package mutating func replaceAll(
        provedBy cursor: Cursor, head: UInt64, nonce: UInt32, now: Int64
    ) -> EpochID {
        let highest = max(cursor.epoch.ordinal, current?.id.ordinal ?? 0)
        let id = EpochID(ordinal: Self.ordinalBeyondLoss(after: highest, now: now), nonce: nonce)
        epochs = [Epoch(id: id, openedAt: head, isVoid: false)]
        return id
    }

    /// Returns the ordinal of an epoch that voids all earlier ones, including epochs of starts
    /// whose record a restore removed. There are fewer starts than seconds since 1970, so `now`, in
    /// these seconds, exceeds all their ordinals.
    package static func ordinalBeyondLoss(after last: UInt32, now: Int64) -> UInt32 {
        // Leaves ordinals for later starts.
        max(last &+ 1, UInt32(clamping: min(max(now, 0), Int64(UInt32.max) - 1_000_000)))
    }
}

/// Seals the cursors that a gateway issues, so that no one else can forge them. This matters
/// because a cursor of an unknown epoch voids the cursors of all other clients.
package struct CursorSeal: Sendable {
    private let hash: SipHash

    /// Creates a seal with a secret of the data directory. Copies of the directory share the
    /// secret, so that cursors of a lost tail are still recognized as genuine.
    package init(_ hash: SipHash) {
        self.hash = hash
    }

    package func cursor(_ epoch: EpochID, _ sequence: UInt64) -> Cursor {
        Cursor(epoch: epoch, sequence: sequence, tag: tag(epoch, sequence))
    }

    /// Returns whether this gateway sealed the cursor.
    package func isGenuine(_ cursor: Cursor) -> Bool {
        cursor.tag == tag(cursor.epoch, cursor.sequence)
    }

    private func tag(_ epoch: EpochID, _ sequence: UInt64) -> UInt64 {
        hash(2, UInt64(epoch.ordinal) << 32 | UInt64(epoch.nonce), sequence)
    }
}
