import NIOCore

/// The time that a peer has for the body of a request. Bytes that arrive extend it, and it stands
/// still while the gateway does not read. A pure value: the caller passes the time.
struct BodyDeadline {
    private let settings: ConnectionSettings
    /// The end of the time by the peer's pace, and of all of it.
    private var due: NIODeadline
    private var last: NIODeadline
    /// `nil` while the gateway reads.
    private var heldSince: NIODeadline?

    init(_ settings: ConnectionSettings, now: NIODeadline) {
        self.settings = settings
        (due, last) = (now + settings.bodyPause, now + settings.bodyTimeout)
    }

    mutating func received(_ count: Int, now: NIODeadline) {
        due = settings.due(due, after: count, now: now)
    }

    mutating func reads(_ isReading: Bool, now: NIODeadline) {
        let held = heldSince.map { now - $0 } ?? .zero
        if isReading { (due, last) = (due + held, last + held) }
        heldSince = isReading ? nil : heldSince ?? now
    }

    /// Returns the deadline of the body unless more of it arrives; always later than `now` while
    /// the gateway does not read. `bodiesDue` is the deadline by the pace of all bodies of the
    /// connection.
    func end(now: NIODeadline, _ bodiesDue: NIODeadline) -> NIODeadline {
        heldSince == nil ? min(max(due, bodiesDue), last) : now + settings.bodyPause
    }
}

extension ConnectionSettings {
    /// Returns an end of time that `count` bytes extend.
    func due(_ due: NIODeadline, after count: Int, now: NIODeadline) -> NIODeadline {
        let earned = Int64(count) * 1_000_000_000 / Int64(bodyBytesPerSecond)
        return min(due + TimeAmount.nanoseconds(earned), now + bodyPause)
    }
}
