import WidgetModel

extension PushDesk {
    /// Pushes to an address what is stale now, unless nothing is or the budget withholds it.
    mutating func push(_ slot: Int, to id: UInt64, now: Int64) {
        guard let lane = lanes[slot], let client = clients[lane.client],
            let address = client.addresses[id]
        else {
            lanes[slot]?.attempts.setUsable(id, false)
            return
        }
        let since = point(lane.sort, lane.attempts.unsaid(at: id))
        guard let stale = shard.poll(lane.record, app: lane.client.app, since: since, kinds: nil),
            !stale.isEmpty
        else {
            let position = position
            lanes[slot]?.attempts.nothingIsStale(at: position)
            return
        }
        let position = position
        var counted: UnderWay.Counted?
        switch ask(lane, address, stale, now: now) {
        case .free: break
        case .counted(let count): counted = count
        case .withheld(let until):
            lanes[slot]?.attempts.withheld(id, until: until)
            return
        }
        changed.insert(lane.client)
        let number = nextNumber()
        // What it says decides whether it is the message of the attempt before.
        let content = hash(stale.words)
        let message = clients[lane.client]?.addresses[id]?.webhook?.attempt(saying: content)
        lanes[slot]?.attempts.began(id, at: position)
        underWay[number] = UnderWay(
            client: lane.client, sort: lane.sort, address: id, position: position,
            message: message,
            counted: counted)
        actions.append(
            .push(
                PushOrder(
                    number: number, client: lane.client, sort: lane.sort,
                    address: address.address,
                    environment: address.environment?.current ?? .production,
                    mayTryOtherEnvironment: address.environment?.mayTryOther ?? false,
                    content: stale, position: position, urgency: lane.attempts.urgency,
                    failures: lane.attempts.failures(at: id),
                    registeredAt: client.addressedAt,
                    message: hash(
                        hash(lane.client.app), hash(lane.client.client), id, content,
                        message?.message ?? 0))))
    }

    /// From where a sort is asked what is stale. Recommendation sets go by what was confirmed of
    /// them alone.
    func point(_ sort: PushSort, _ cursor: UInt64) -> ResumePoint {
        guard cursor > 0 else { return .everything }
        return .after(sort == .recommendations ? position : cursor)
    }

    /// What the budget says of a push.
    private enum Permission {
        /// It is not counted.
        case free
        /// It may be made, and was counted.
        case counted(UnderWay.Counted)
        /// It may not be made before that moment.
        case withheld(until: Int64)
    }

    private mutating func ask(
        _ lane: PushLane, _ address: PushAddress, _ stale: StaleSet, now: Int64
    ) -> Permission {
        guard let apns = address.address.apns, let environment = address.environment else {
            return .free
        }
        if isStopped(lane.client.app, apns, environment.current) { return .withheld(until: .max) }
        let channel = PushBudget.Channel(pushType: apns.pushType)
        let kinds = kinds(stale, lane.record)
        var budget = clients[lane.client]?.budget ?? PushBudget(terms.budget, now: now)
        let before = budget.lastPushes(of: kinds)
        let verdict = budget.ask(
            channel, stale: kinds, urgency: lane.attempts.urgency, now: now)
        clients[lane.client]?.budget = budget
        if case .withhold(let until) = verdict { return .withheld(until: until) }
        return .counted(UnderWay.Counted(channel: channel, before: before))
    }

    private func isStopped(
        _ app: String, _ apns: DeliveryAddress.APNsAddress, _ environment: APNsEnvironment
    ) -> Bool {
        guard !stops.isEmpty else { return false }
        return stops.contains(Stop(app: app, environment: environment, topic: nil))
            || stops.contains(
                Stop(app: app, environment: environment, topic: Self.topic(apns)))
    }

    private static func topic(_ apns: DeliveryAddress.APNsAddress) -> String {
        apns.topic ?? apns.pushType
    }

    private func kinds(_ stale: StaleSet, _ record: ClientRecord) -> [PushBudget.Kind] {
        let names =
            stale.all ? record.registration.widgets.map(\.kind) : stale.names.map(\.kind)
        return Set(names).map {
            PushBudget.Kind(hash($0), interval: terms.intervals[$0] ?? terms.interval)
        }
    }

    // MARK: What came of it

    /// A push ended. Told of each push once; more often changes nothing.
    ///
    /// - Parameter random: Spreads what failed together.
    package mutating func finished(
        _ number: UInt64, _ result: PushResult, now: Int64, random: UInt64
    ) {
        guard let push = underWay.removeValue(forKey: number) else { return }
        changed.insert(push.client)
        if let slot = slot(of: push.client, push.sort),
            lanes[slot]?.attempts.isUnderWay(push.address, at: push.position) ?? false
        {
            let failures = lanes[slot]?.attempts.failures(at: push.address) ?? 0
            switch result {
            case .apns(let verdict, let mayHaveArrived):
                if verdict != .delivered, let counted = push.counted {
                    clients[push.client]?.budget?.giveBack(
                        counted.channel, before: counted.before, isCounted: mayHaveArrived,
                        now: now)
                }
                finish(slot, push, verdict, failures: failures, now: now, random: random)
            case .webhook(let answer):
                finish(slot, push, answer, now: now, random: random)
            }
            look(slot, now: now)
        }
        drainQueue(now: now)
    }

    private mutating func finish(
        _ slot: Int, _ push: UnderWay, _ verdict: APNsReaction.Verdict, failures: Int, now: Int64,
        random: UInt64
    ) {
        guard let address = clients[push.client]?.addresses[push.address],
            let environment = address.environment?.current
        else { return }
        switch verdict {
        case .delivered:
            lanes[slot]?.attempts.delivered(push.address, now: now)
            clients[push.client]?.addresses[push.address]?.environment?.worked(in: environment)
        case .dropAddress:
            lanes[slot]?.attempts.setUsable(push.address, false)
            actions.append(.drop(push.client, address.address))
        case .quarantineAddress:
            lanes[slot]?.attempts.setUsable(push.address, false)
        case .tryOtherEnvironment:
            clients[push.client]?.addresses[push.address]?.environment?.swap()
            lanes[slot]?.attempts.failed(push.address, until: now)
        case .retry(let wait):
            let milliseconds = wait.milliseconds(
                failures: failures, urgency: lanes[slot]?.attempts.urgency ?? .normal,
                random: random)
            lanes[slot]?.attempts.failed(push.address, until: now.later(by: milliseconds))
        case .giveUp:
            lanes[slot]?.attempts.gaveUp(push.address)
        case .stop(let scope):
            stops.insert(
                Stop(
                    app: push.client.app, environment: environment,
                    topic: scope == .credential ? nil : address.address.apns.map(Self.topic)))
            lanes[slot]?.attempts.failed(push.address, until: now)
        }
    }

    private mutating func finish(
        _ slot: Int, _ push: UnderWay, _ answer: WebhookSchedule.Answer, now: Int64,
        random: UInt64
    ) {
        guard let message = push.message,
            let address = clients[push.client]?.addresses[push.address]?.address,
            let outcome = clients[push.client]?.addresses[push.address]?.webhook?.answered(
                answer, to: message, now: now, random: random)
        else { return }
        switch outcome {
        case .delivered:
            lanes[slot]?.attempts.delivered(push.address, now: now)
        case .retry(let at):
            lanes[slot]?.attempts.failed(push.address, until: at)
        case .disabled(let reason):
            lanes[slot]?.attempts.setUsable(push.address, false)
            actions.append(.disabled(push.client, address, reason))
        case .failed:
            lanes[slot]?.attempts.failed(push.address, until: now)
        }
    }
}

extension PushBudget.Channel {
    /// What a push type counts as.
    package init(pushType: String) {
        self =
            switch pushType {
            case "controls": .controls
            case "background": .background
            default: .widgets
            }
    }
}

extension StaleSet {
    /// All that it says, as one text.
    fileprivate var words: String {
        var parts = [String(sequence), all ? "all" : ""]
        for name in names {
            parts += [String(name.target.rawValue), name.kind]
            for parameter in name.parameters {
                parts += [parameter.name, parameter.value ?? "\u{1}"]
            }
            parts.append("\u{2}")
        }
        return parts.joined(separator: "\0")
    }
}
