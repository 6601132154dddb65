import WidgetModel

/// The stored form of delivery attempts. Pushes in flight are not included: they are sent again.
extension DeliveryAttempts {
    /// More pushes than are made before their timestamps are stored.
    static let stampsUnsaved: Int64 = 60

    /// Writes the attempts of a category in stored form.
    func save(_ sort: PushCategory, to text: inout SavedText, now: Int64, wall: Int64) {
        text.text("sort", sort.text)
        text.number("savedAt", wall)
        text.bits("latest", latest)
        text.bits("confirmed", confirmed)
        text.bits("told", told)
        text.number("urgency", Int64(urgency.rank))
        text.flag("answers", isKnownToAnswer)
        text.number("held", heldUntil.elapsed(since: now))
        text.number("grace", graceLeft(now: now))
        text.list("addresses", addresses) { $1.save(to: &$0, now: now) }
        // Only Live Activities have these members.
        if stamp != 0 { text.number("stamp", stamp) }
        if startedSince != 0 { text.bits("startedSince", startedSince) }
    }

    private func graceLeft(now: Int64) -> Int64 {
        guard streams == 0 else { return Self.grace }
        let end = max(graceUntil, carried.last?.until ?? .min)
        return min(Self.grace, end.elapsed(since: now))
    }

    /// Restores stored attempts. All streams ended with the previous process, so a client that had
    /// one gets the grace period to reconnect. No wait is longer than a day.
    ///
    /// - Throws: ``UnreadableState``.
    init(_ value: JSONValue, now: Int64, wall: Int64) throws {
        let saved = try SavedMembers(value)
        let away = TimeAway.between(try saved.number("savedAt"), wall)
        func end(of wait: Int64) -> Int64 {
            let left = min(max(wait, 0), TimeAway.longest) - away
            return left > 0 ? now.later(by: left) : .min
        }
        latest = try saved.bits("latest")
        confirmed = try saved.bits("confirmed")
        // Older versions did not store it; the addresses then say what was told.
        if saved["told"] != nil { told = try saved.bits("told") }
        urgency = Urgency(rank: UInt8(clamping: try saved.number("urgency")))
        isKnownToAnswer = try saved.flag("answers")
        heldUntil = end(of: try saved.number("held"))
        let grace = min(try saved.number("grace"), Self.grace)
        if grace > 0 { graceUntil = now.later(by: grace) }
        pendingSince = now
        uncarried = latest
        if saved["startedSince"] != nil { startedSince = try saved.bits("startedSince") }
        let stamp = saved["stamp"]?.integerValue ?? 0
        if stamp > 0 { self.stamp = stamp.later(by: Self.stampsUnsaved) }
        addresses = try saved.list("addresses").map { value in
            let saved = try SavedMembers(value)
            var address = Address(id: try saved.bits("id"))
            address.delivered = try saved.bits("delivered")
            // Older versions did not store it; a resend then states everything.
            if saved["spokeSince"] != nil { address.spokeSince = try saved.bits("spokeSince") }
            address.givenUp = try saved.bits("givenUp")
            address.failures = Int(min(max(try saved.number("failures"), 0), 1_000))
            let repeats = Int(clamping: try saved.number("repeats"))
            address.repeats = min(max(repeats, 0), Self.repeatsMax)
            address.awaitsSign = try saved.flag("awaits")
            address.isUsable = try saved.flag("usable")
            address.hasEnded = saved["ended"] == true
            address.notBefore = end(of: try saved.number("wait"))
            address.repeatAt = end(of: try saved.number("repeatWait"))
            return address
        }
    }
}

extension DeliveryAttempts.Address {
    fileprivate func save(to text: inout SavedText, now: Int64) {
        text.bits("id", id)
        text.bits("delivered", delivered)
        text.bits("spokeSince", spokeSince)
        text.bits("givenUp", givenUp)
        text.number("failures", Int64(failures))
        text.number("repeats", Int64(repeats))
        text.flag("awaits", awaitsSign)
        text.flag("usable", isUsable)
        text.number("wait", notBefore.elapsed(since: now))
        text.number("repeatWait", repeatAt.elapsed(since: now))
        if hasEnded { text.flag("ended", true) }
    }
}
