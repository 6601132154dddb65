/// The identity of an open stream on one shard. The serial changes when the slot is reused, so that
/// an outdated id affects no other stream.
package struct StreamID: Sendable, Hashable {
    /// The slot among the shard's streams; reused after the stream closed.
    package let slot: UInt32
    /// The serial number that distinguishes successive streams in a slot.
    package let serial: UInt32
}

/// The properties of a stream that are needed for each delivery, in one array. It is half a cache
/// line, because a change with many dependent streams accesses as many places in memory.
struct StreamRecord {
    /// The generation, which changes with each registration in force, and when the stream ends.
    var generation: UInt32 = 0
    var serial: UInt32 = 0
    /// Twice the number of waiting keys, and in the lowest bit whether the stream lags.
    private var state: UInt32 = 0
    /// The index of its last delivery in this turn; -1 for none.
    var last: Int32 = -1
    /// The last sent id: everything up to it that concerns the client has been sent.
    var watermark: UInt64 = 0
    /// The sequence up to which everything was sent by a catch-up, including waiting changes.
    var covered: UInt64 = 0

    /// The number of keys whose changes wait in a collapse window, each once for every key of the
    /// stream that it affects. The stream's id stays below these changes.
    var waitingKeys: UInt32 {
        get { state >> 1 }
        set { state = newValue << 1 | state & 1 }
    }

    /// Whether buffered data does not fit, so that nothing is sent before a catch-up.
    var isLagging: Bool {
        get { state & 1 != 0 }
        set { state = state & ~1 | (newValue ? 1 : 0) }
    }

    /// Returns the one of both sequences that applies to the stream.
    func own(_ watermarks: Watermarks) -> UInt64 {
        waitingKeys == 0 ? watermarks.current : watermarks.waiting
    }

    /// Advances the id, if its own sequence is higher; returns the new id, or 0.
    mutating func advance(to watermarks: Watermarks) -> UInt64 {
        let id = own(watermarks)
        guard id > watermark else { return 0 }
        watermark = id
        return id
    }
}

/// The sequences up to which everything was sent to the streams of an app that have waiting keys,
/// and to all others.
typealias Watermarks = (waiting: UInt64, current: UInt64)

/// The properties of a stream that are needed only when its registration or state changes.
struct StreamSubscription {
    var record: ClientRecord
    /// The app's index among the shard's apps.
    let app: Int
    let kinds: Set<String>?
    /// The sequence up to which everything was sent when it opened, or was known to its client.
    let openedAt: UInt64
    /// The index in the app's list of streams.
    var place: UInt32
    /// The slot of the same client's stream opened before this one.
    var previous: UInt32?
    /// Whether its client or app was removed: it is about to be closed, and nothing is sent on it
    /// any more.
    var isEnded = false
}
