import NIOCore

/// Deadlines that are all set equally far ahead: they pass in the order in which they were set.
///
/// What a deadline was set for may be over before it passes; nothing is taken out for that, it is
/// dropped when it is the next one.
struct ExpiryQueue<Owner> {
    private struct Entry {
        let time: NIODeadline
        let owner: Owner
    }

    /// How far ahead.
    let ahead: TimeAmount
    private var entries = CircularBuffer<Entry>()

    init(ahead: TimeAmount) { self.ahead = ahead }

    /// The deadline of something that begins at `now`, which never goes back.
    ///
    /// - Returns: When it passes.
    mutating func set(_ owner: Owner, now: NIODeadline) -> NIODeadline {
        let time = now + ahead
        entries.append(Entry(time: time, owner: owner))
        return time
    }

    /// The next deadline that counts: one that `isSet` still says yes to.
    mutating func next(_ isSet: (Owner, NIODeadline) -> Bool) -> NIODeadline? {
        while let first = entries.first {
            if isSet(first.owner, first.time) { return first.time }
            entries.removeFirst()
        }
        return nil
    }

    /// Takes out the next one that counts, if it has passed at `now`.
    mutating func takePassed(
        now: NIODeadline, _ isSet: (Owner, NIODeadline) -> Bool
    ) -> Owner? {
        guard let time = next(isSet), time <= now else { return nil }
        return entries.removeFirst().owner
    }

    /// How many are kept, with those that are over.
    var count: Int { entries.count }
}
