import NIOCore

/// Deadlines that all lie equally far ahead, so that they pass in the order in which they were set.
///
/// A deadline that has become obsolete is not searched for: it is dropped when it is the next one.
struct ExpiryQueue<Owner> {
    private struct Entry {
        let time: NIODeadline
        let owner: Owner
    }

    /// The time from setting a deadline until it passes.
    let ahead: TimeAmount
    private var entries = CircularBuffer<Entry>()

    init(ahead: TimeAmount) { self.ahead = ahead }

    /// Adds a deadline and returns its time. `now` must never go back.
    mutating func set(_ owner: Owner, now: NIODeadline) -> NIODeadline {
        let time = now + ahead
        entries.append(Entry(time: time, owner: owner))
        return time
    }

    /// The next deadline that is still set according to `isSet`; drops obsolete ones before it.
    mutating func next(_ isSet: (Owner, NIODeadline) -> Bool) -> NIODeadline? {
        while let first = entries.first {
            if isSet(first.owner, first.time) { return first.time }
            entries.removeFirst()
        }
        return nil
    }

    /// Removes the next deadline that is still set, if it has passed at `now`, and returns its
    /// owner.
    mutating func takePassed(
        now: NIODeadline, _ isSet: (Owner, NIODeadline) -> Bool
    ) -> Owner? {
        guard let time = next(isSet), time <= now else { return nil }
        return entries.removeFirst().owner
    }

    /// The number of deadlines held, including obsolete ones.
    var count: Int { entries.count }
}
