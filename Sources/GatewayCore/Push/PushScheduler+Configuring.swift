/// Configuration changes at run time.
extension PushScheduler {
    /// Adopts a new configuration.
    ///
    /// An app or webhook that is no longer configured gets no pushes; its notifications stay owed.
    /// Withheld content is checked against the new budgets, which keep the spent share. It is then
    /// spread over time like a change for as many devices.
    ///
    /// - Parameters:
    ///   - mended: The places whose key, certificate or topic changed. Stopped, rejected, waiting
    ///     and quarantined pushes there are retried. Results of pushes in flight there cause no more
    ///     stops.
    ///   - liftsStops: Whether to lift every stop, because an operator requested it.
    package mutating func configure(
        _ terms: Terms, mended places: Set<AppService>, liftsStops: Bool, now: Int64
    ) {
        if terms.budget != self.terms.budget { adopt(terms.budget, now: now) }
        self.terms = terms
        queue.terms = terms
        spread = PushSpread(terms.spread, hash: hash)
        stops = liftsStops ? [] : stops.filter { !places.contains($0.place) }
        if !underWay.isEmpty { for place in places { mended[place] = lastNumber } }
        let freed = lanes.indices.filter { free($0, mended: places) }
        for slot in freed { lanes[slot]?.attempts.askAgain() }
        lookTogether(freed, now: now)
        drainQueue(now: now)
    }

    private mutating func adopt(_ terms: PushBudget.Terms, now: Int64) {
        // Modified in place: a view of the keys would copy all clients.
        var index = clients.startIndex
        while index < clients.endIndex {
            if clients.values[index].budget != nil {
                clients.values[index].budget?.adopt(terms, now: now)
                changed.insert(clients.keys[index])
            }
            clients.formIndex(after: &index)
        }
    }

    /// Allows pushes for a target where the configuration permits them.
    ///
    /// - Returns: Whether something may now be sent that was blocked before.
    private mutating func free(_ slot: Int, mended places: Set<AppService>) -> Bool {
        guard let lane = lanes[slot], let client = clients[lane.client] else { return false }
        var attempts = lane.attempts
        var isFreed = attempts.isWithheld
        for (id, address) in client.addresses {
            if attempts.setConfigured(id, reaches(address.address, of: lane.client.app)) {
                isFreed = true
            }
            guard let service = address.service, !address.isDead,
                places.contains(AppService(app: lane.client.app, service)),
                owns(address.address, lane.client), attempts.mended(id)
            else { continue }
            isFreed = true
            changed.insert(lane.client)
        }
        lanes[slot]?.attempts = attempts
        return isFreed
    }

    /// Returns whether the result of a push refers to a configuration that is no longer in force.
    func isOutdated(
        _ verdict: APNsReaction.Verdict, _ number: UInt64, _ push: UnderWay
    ) -> Bool {
        switch verdict {
        case .stop, .quarantineAddress, .giveUp: break
        case .delivered, .dropAddress, .tryOtherEnvironment, .retry: return false
        }
        guard let service = clients[push.client]?.addresses[push.address]?.service,
            let last = mended[AppService(app: push.client.app, service)]
        else { return false }
        return number <= last
    }
}
