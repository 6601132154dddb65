import WidgetModel

/// Pushes requested by a person: sent at once, regardless of budget, schedule and health. Their
/// results have no consequence, except that accepted content is not sent again.
extension PushScheduler {
    /// The result of a request for pushes.
    package enum Resent: Sendable, Hashable {
        /// This number of pushes is being sent, one for each address.
        case pushing(Int)
        /// The client has no such address, or no pushes are sent to it.
        case nowhere
        /// Too many pushes are in flight.
        case busy
    }

    /// Pushes the currently stale content to a client's addresses of one channel. If nothing is
    /// stale, repeats the last push, or reports everything if that is unknown.
    ///
    /// This includes addresses that failed, or are quarantined or disabled. A device's budget does
    /// not limit the push, but counts it.
    ///
    /// - Parameter channel: One of ``WidgetModel/NotificationChannel/pushes``.
    package mutating func resend(_ key: ClientKey, channel: NotificationChannel, now: Int64)
        -> Resent
    {
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
            guard let first = slots.first, let lane = lanes[first] else { continue }
            let isOver = lane.attempts.address(id)?.hasEnded ?? false
            if channel == .liveactivity, isOver || activity(of: lane, at: address.address) == nil {
                continue
            }
            let route = route(to: id, of: lane)
            guard underWay.count < terms.underWayMax, queue.hasRoom(route, isManual: true) else {
                return made > 0 ? .pushing(made) : .busy
            }
            let said =
                stale(of: key, slots, since: \.confirmed)
                ?? stale(of: key, slots, since: { $0.address(id)?.spokeSince ?? 0 })
                ?? (content: .everything(at: position), since: 0)
            if let type = address.address.budgeted {
                var budget = clients[key]?.budget ?? PushBudget(terms.budget)
                budget.count(type, pushed: kinds(said.content, lane.record), now: now)
                clients[key]?.budget = budget
            }
            begin(
                PushContent(slots: slots, stale: said.content, since: said.since), key, id,
                on: route, counted: nil, isManual: true)
            made += 1
        }
        return made > 0 ? .pushing(made) : .nowhere
    }

    /// Records the result of a push that a person requested.
    mutating func finishManual(_ push: UnderWay, _ result: PushResult, ends: Bool, now: Int64) {
        var isTaken = false
        switch result {
        case .service(let verdict, _, _): isTaken = verdict == .delivered
        case .webhook(let response):
            guard let message = push.message else { break }
            isTaken =
                clients[push.client]?.addresses[push.address]?.webhook?.answered(
                    response, to: message, now: now, random: 0) == .delivered
        case .content, .notSent: break
        }
        let apns = clients[push.client]?.addresses[push.address]?.address.apns
        for slot in push.sorts.compactMap({ slot(of: push.client, $0) }) where isTaken {
            lanes[slot]?.attempts.resent(
                push.address, at: push.position, since: push.since, now: now,
                awaits: apns?.type != .liveactivity, ends: ends)
            lanes[slot]?.settled(upTo: push.position)
            look(slot, now: now)
        }
        drainQueue(now: now)
    }
}
