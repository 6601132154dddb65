/// Names an open stream on one shard. The generation ends when the stream does, so that a name
/// kept too long reaches nobody else.
package struct StreamID: Sendable, Hashable {
    /// Its place among the shard's streams; reused after it closed.
    package let slot: UInt32
    /// Which of the streams that had the place.
    package let serial: UInt32
}

/// What the hot path needs of one stream, in one array: half a cache line, for a change that reaches
/// many looks at as many places in memory.
struct StreamRecord {
    /// Ends with each registration in force, and with the stream.
    var generation: UInt32 = 0
    var serial: UInt32 = 0
    /// The app's place plus one, and in the lowest bit whether it lags.
    private var state: UInt32 = 0
    /// Its last delivery of this turn, -1 for none.
    var last: Int32 = -1
    /// The id last sent: everything up to here that concerns the client has been sent.
    var watermark: UInt64 = 0
    /// Everything up to here was sent by a catch-up, waiting changes included.
    var covered: UInt64 = 0

    /// Its app's place among the shard's apps; -1 for a slot that is free.
    var app: Int {
        get { Int(state >> 1) - 1 }
        set { state = UInt32(truncatingIfNeeded: newValue + 1) << 1 | state & 1 }
    }

    /// Bytes wait that do not fit: nothing is sent before a catch-up.
    var isLagging: Bool {
        get { state & 1 != 0 }
        set { state = state & ~1 | (newValue ? 1 : 0) }
    }

    var isOpen: Bool { state > 1 }
}

/// What is needed of a stream only when something about it changes.
struct StreamSubscription {
    var record: ClientRecord
    let kinds: Set<String>?
    /// Everything up to here was said when it opened, or was known to its client.
    let openedAt: UInt64
    /// Its place in the app's list of streams.
    var place: UInt32
    /// The slot of the same client's stream that was opened before it.
    var previous: UInt32?
    /// Its client or app was removed: it is to be closed, and nothing is said on it any more.
    var isEnded = false
}
