import WidgetModel

extension PushScheduler {
    /// Returns the outcome of the change at `sequence` by pushes for an item that it affects; `nil`
    /// when none are sent for it.
    package func standing(
        of item: Subscription, _ record: ClientRecord, app: String, at sequence: UInt64, now: Int64
    ) -> Outcome? {
        let key = ClientKey(app: app, client: record.client)
        guard let lane = lane(of: item, record, key) else { return nil }
        let attempts = lane.attempts
        let isConfirmed = attempts.confirmed >= sequence && !item.isSet
        if isConfirmed, !lane.isPushed { return .confirmed }
        if let address = attempts.addresses.first(where: { $0.delivered >= sequence }) {
            return channel(address.id, key).map { .sent($0) }
        }
        // Its source had nothing to say.
        if isConfirmed { return .confirmed }
        if let absence = absence(lane, key) { return .unreachable(absence) }
        if attempts.latest < sequence,
            let known = shard.items(of: record, app: app)?.items.first(where: {
                $0.item.place == item.place
            }), case .waits(let until)? = known.telling
        {
            return .withheld(.collapse, until: until)
        }
        if attempts.addresses.contains(where: { $0.underWay != nil }) {
            return .withheld(.underWay, until: nil)
        }
        guard let turn = attempts.turn(now: now) else {
            let isRefused = attempts.addresses.contains { $0.givenUp >= sequence }
            return isRefused ? .unreachable(.refused) : nil
        }
        let isDue = turn.due <= now
        let reason = isDue ? .queue : attempts.reason(turn.address, due: turn.due)
        if reason == .queue || reason == .retry, let source = source(of: lane, at: turn.address.id)
        {
            return .withheld(.content, until: max(turn.due, source.until))
        }
        if reason == .retry, lane.failure != nil { return .withheld(.content, until: turn.due) }
        guard !isDue else { return .withheld(.queue, until: nil) }
        return withheld(
            reason, until: turn.due, on: lane, client: key, address: turn.address.id, now: now)
    }

    /// Predicts the outcome of the pushes for an item if a change that affects it were made now.
    ///
    /// - Parameter devices: The number of affected clients that receive pushes.
    /// - Returns: `nil` when none are sent for it.
    package func forecast(
        of item: Subscription, _ record: ClientRecord, app: String, urgency: Urgency, devices: Int,
        now: Int64
    ) -> Outcome? {
        let key = ClientKey(app: app, client: record.client)
        guard var lane = lane(of: item, record, key) else { return nil }
        if let absence = absence(lane, key) { return .unreachable(absence) }
        let sequence = position + 1
        lane.attempts.changed(
            at: sequence, urgency: urgency,
            delay: spread.delay(
                device: hash(key.client), sequence: sequence, devices: devices, urgency: urgency),
            now: now)
        guard let turn = lane.attempts.turn(now: now) else {
            return .withheld(.underWay, until: nil)
        }
        let due = max(now, turn.due)
        if let hold = hold(
            on: lane, client: key, address: turn.address.id, also: [item.kind], now: due)
        {
            return hold
        }
        if let source = source(of: lane, at: turn.address.id) {
            return .withheld(.content, until: max(due, source.until))
        }
        guard turn.due > now else { return channel(turn.address.id, key).map { .sent($0) } }
        return .withheld(lane.attempts.reason(turn.address, due: turn.due), until: turn.due)
    }

    package struct AddressStatus: Sendable {
        package let sort: PushCategory
        package let address: DeliveryAddress
        /// The sequence up to which everything was delivered to it.
        package let delivered: UInt64
        /// The cause of the last push; `nil` before the first one since the start.
        package let cause: PushCause?
        /// The number of consecutive failures.
        package let failures: Int
        /// The earliest time of the next push after a failure, ms on the monotonic clock.
        package let retryAt: Int64?
        /// Whether a push is in flight.
        package let isUnderWay: Bool
        /// The reason why it receives no pushes; `nil` if it does.
        package let absence: Outcome.Absence?
        /// The type of the Live Activity that has no content, and why; `nil` if there is none.
        package let failing: (type: String, failure: ContentFailure)?
        /// The device's saved pushes of this type; `nil` for a webhook, which has no budget.
        package let savings: PushAllowance.Savings?
    }

    /// Returns the status of a client's addresses by category, in the client's order.
    package func addresses(of key: ClientKey, now: Int64) -> [AddressStatus] {
        (clients[key]?.slots ?? []).compactMap { lanes[$0] }.flatMap { lane in
            lane.attempts.addresses.compactMap { address in
                guard address.isConfigured, let known = clients[key]?.addresses[address.id]
                else { return nil }
                let failure = source(of: lane, at: address.id)?.failure ?? lane.failure
                return AddressStatus(
                    sort: lane.sort, address: known.address, delivered: address.delivered,
                    cause: address.cause, failures: address.failures,
                    retryAt: address.failures > 0 && address.notBefore > now
                        ? address.notBefore : nil,
                    isUnderWay: address.underWay != nil,
                    absence: absence(address, known),
                    failing: failure.flatMap { failure in
                        lane.activityType.map { (type: $0, failure: failure) }
                    },
                    savings: known.address.budgeted.map { type in
                        (clients[key]?.budget ?? PushBudget(terms.budget)).savings(type, now: now)
                    })
            }
        }
    }

    /// Returns the sequence up to which a client has acknowledged or resumed; 0 if that is unknown,
    /// or if nothing is pushed to it.
    package func acknowledged(_ key: ClientKey) -> UInt64 {
        (clients[key]?.slots ?? []).compactMap { lanes[$0] }
            .filter { $0.sort != .recommendations && !$0.isPushed }
            .map(\.attempts.confirmed).max() ?? 0
    }

    /// Returns the sequence up to which a client confirmed an item; 0 when it is not pushed.
    package func confirmed(
        _ item: Subscription, of record: ClientRecord, app: String
    ) -> UInt64 {
        lane(of: item, record, ClientKey(app: app, client: record.client))?.attempts.confirmed ?? 0
    }

    private func lane(
        of item: Subscription, _ record: ClientRecord, _ key: ClientKey
    ) -> PushTarget? {
        let lane = slot(of: key, item.sort(in: record.registration)).flatMap { lanes[$0] }
        return lane.flatMap { $0.isConfigured ? $0 : nil }
    }

    private func channel(_ address: UInt64, _ key: ClientKey) -> NotificationChannel? {
        clients[key]?.addresses[address]?.address.channel
    }

    /// Returns the failures of the source whose content is pushed to an address; `nil` unless it is
    /// down.
    func source(of lane: PushTarget, at id: UInt64) -> SourceHealth? {
        let source = sources.isEmpty ? nil : sources[route(to: id, of: lane)]
        return source?.isDown ?? false ? source : nil
    }

    /// Returns the reason why an address receives no pushes; `nil` if it does.
    private func absence(
        _ address: DeliveryAttempts.Address, _ known: PushAddress
    ) -> Outcome.Absence? {
        if address.hasEnded { return .ended }
        guard !address.isUsable else { return nil }
        return known.webhook?.disabled == nil ? .deadAddress : .disabledWebhook
    }

    /// Returns the reason why no address of a target receives pushes; `nil` if one does.
    private func absence(_ lane: PushTarget, _ key: ClientKey) -> Outcome.Absence? {
        let addresses = lane.attempts.addresses.filter(\.isConfigured)
        guard !addresses.contains(where: \.isOpen) else { return nil }
        if addresses.contains(where: \.hasEnded) { return .ended }
        let isDisabled = addresses.contains {
            clients[key]?.addresses[$0.id]?.webhook?.disabled != nil
        }
        return isDisabled ? .disabledWebhook : .deadAddress
    }

    /// Returns the outcome for a withheld push, with the budget's reason if the budget withheld it.
    private func withheld(
        _ reason: Outcome.Reason, until: Int64, on lane: PushTarget, client key: ClientKey,
        address: UInt64, now: Int64
    ) -> Outcome {
        guard reason == .budget else { return .withheld(reason, until: until) }
        return hold(on: lane, client: key, address: address, now: now)
            ?? .withheld(.budget, until: until)
    }

    /// Returns the outcome if the budget or a stop withholds a push of everything stale, and of
    /// `more` kinds in addition; `nil` when it may be sent.
    private func hold(
        on lane: PushTarget, client key: ClientKey, address id: UInt64, also more: [String] = [],
        now: Int64
    ) -> Outcome? {
        guard let address = clients[key]?.addresses[id], let type = address.address.budgeted else {
            return nil
        }
        if isStopped(key.app, address) { return .withheld(.stopped, until: nil) }
        let since = point(lane.sort, lane.attempts.unsaid(at: id))
        let stale = shard.poll(lane.record, app: key.app, since: since, kinds: nil)
        let kinds =
            kinds(stale ?? StaleSet(), lane.record)
            + kinds(
                StaleSet(more.map { InvalidationTarget(.timeline, $0) }, sequence: 0), lane.record)
        let budget = clients[key]?.budget ?? PushBudget(terms.budget)
        return budget.hold(
            type, stale: kinds, urgency: lane.attempts.urgency, now: now
        ).map { .withheld($0.isInterval ? .interval : .budget, until: $0.until) }
    }
}
