import WidgetModel

/// What is configured anew while the desk works.
extension PushDesk {
    /// Goes by other terms from now on.
    ///
    /// Apps and webhooks that are configured no more are left alone, and owed what they miss. What
    /// was withheld is asked for anew, by the new budgets, of which the same share is spent, and goes
    /// out spread as a change for as many devices would.
    ///
    /// - Parameters:
    ///   - mended: Where key, certificate or topic became another: what was stopped, refused for
    ///     good or quarantined there is tried again, and what comes of pushes that are under way
    ///     there stops nothing any more.
    ///   - liftsStops: Whether every stop is lifted, because somebody asks for that.
    package mutating func configure(
        _ terms: Terms, mended places: Set<Place>, liftsStops: Bool, now: Int64
    ) {
        if terms.budget != self.terms.budget { adopt(terms.budget, now: now) }
        self.terms = terms
        spread = PushSpread(terms.spread, hash: hash)
        stops = liftsStops ? [] : stops.filter { !places.contains($0.place) }
        if !underWay.isEmpty { for place in places { mended[place] = lastNumber } }
        let freed = lanes.indices.filter { free($0, mended: places) }
        for slot in freed {
            guard let lane = lanes[slot] else { continue }
            let delay = spread.delay(
                device: hash(lane.client.client), sequence: position, devices: freed.count,
                urgency: lane.attempts.urgency)
            lanes[slot]?.attempts.askAgain(after: delay, now: now)
            look(slot, now: now)
        }
        drainQueue(now: now)
    }

    private mutating func adopt(_ terms: PushBudget.Terms, now: Int64) {
        // In place: a view of the keys would have all clients copied.
        var index = clients.startIndex
        while index < clients.endIndex {
            if clients.values[index].budget != nil {
                clients.values[index].budget?.adopt(terms, now: now)
                changed.insert(clients.keys[index])
            }
            clients.formIndex(after: &index)
        }
    }

    /// Lets a lane be pushed for where the configuration allows it.
    ///
    /// - Returns: Whether something may go out that could not before.
    private mutating func free(_ slot: Int, mended places: Set<Place>) -> Bool {
        guard let lane = lanes[slot], let client = clients[lane.client] else { return false }
        var attempts = lane.attempts
        var isFreed = attempts.isWithheld
        for (id, address) in client.addresses {
            if attempts.setConfigured(id, reaches(address.address, of: lane.client.app)) {
                isFreed = true
            }
            guard let environment = address.environment?.current, !address.isDead,
                places.contains(Place(app: lane.client.app, environment: environment)),
                owns(address.address, lane.client), attempts.mended(id)
            else { continue }
            isFreed = true
            changed.insert(lane.client)
        }
        lanes[slot]?.attempts = attempts
        return isFreed
    }

    /// Whether what a push came to says something of a configuration that is not in force any more.
    func isOutdated(
        _ verdict: APNsReaction.Verdict, _ number: UInt64, _ push: UnderWay
    ) -> Bool {
        switch verdict {
        case .stop, .quarantineAddress, .giveUp: break
        case .delivered, .dropAddress, .tryOtherEnvironment, .retry: return false
        }
        guard let environment = clients[push.client]?.addresses[push.address]?.environment?.current,
            let last = mended[Place(app: push.client.app, environment: environment)]
        else { return false }
        return number <= last
    }
}
