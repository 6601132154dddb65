import WidgetModel

/// Pushes that a person asks for: made at once, whatever budget, schedule and health say, and
/// nothing follows from what comes of them but that what was taken is not said again.
extension PushDesk {
    /// What came of asking for pushes.
    package enum Resent: Sendable, Hashable {
        /// So many are made, one for each address.
        case pushing(Int)
        /// The client has no such address, or nothing is pushed there.
        case nowhere
        /// As many pushes are under way as may be.
        case busy
    }

    /// Pushes to a client's addresses of one kind what is stale now; where nothing is, what was
    /// said there last, and everything where that is not known.
    ///
    /// An address that failed, was quarantined or disabled is pushed to as well. A device's budget
    /// is not asked, but counts the push.
    ///
    /// - Parameter channel: `webhook`, or a push type of APNs'.
    package mutating func resend(_ key: ClientKey, channel: String, now: Int64) -> Resent {
        let addresses = (clients[key]?.addresses ?? [:])
            .filter {
                $0.value.address.channel == channel && reaches($0.value.address, of: key.app)
            }
            .sorted { $0.key < $1.key }
        var made = 0
        for (id, address) in addresses {
            let slots = (clients[key]?.slots ?? []).filter { slot in
                lanes[slot]?.attempts.addresses.contains { $0.id == id } ?? false
            }
            guard let first = slots.first, let record = lanes[first]?.record else { continue }
            guard underWay.count < terms.underWayMax else {
                return made > 0 ? .pushing(made) : .busy
            }
            let said =
                stale(of: key, slots, since: \.confirmed)
                ?? stale(of: key, slots, since: { $0.spokeSince(at: id) })
                ?? (content: .everything(at: position), since: 0)
            if let apns = address.address.apns {
                var budget = clients[key]?.budget ?? PushBudget(terms.budget, now: now)
                budget.count(
                    PushBudget.Channel(pushType: apns.pushType),
                    pushed: kinds(said.content, record), now: now)
                clients[key]?.budget = budget
            }
            begin(
                Speech(slots: slots, content: said.content, since: said.since), key, id,
                counted: nil, isManual: true)
            made += 1
        }
        return made > 0 ? .pushing(made) : .nowhere
    }

    /// Notes what a push that a person asked for came to.
    mutating func finishManual(_ push: UnderWay, _ result: PushResult, now: Int64) {
        var isTaken = false
        switch result {
        case .apns(let verdict, _): isTaken = verdict == .delivered
        case .webhook(let answer):
            guard let message = push.message else { break }
            isTaken =
                clients[push.client]?.addresses[push.address]?.webhook?.answered(
                    answer, to: message, now: now, random: 0) == .delivered
        }
        for slot in push.sorts.compactMap({ slot(of: push.client, $0) }) where isTaken {
            lanes[slot]?.attempts.resent(
                push.address, at: push.position, since: push.since, now: now)
            look(slot, now: now)
        }
        drainQueue(now: now)
    }
}
