import CatalogModel
import WidgetModel

extension PushScheduler {
    /// Pushes the stale content to an address, unless there is none or the budget withholds it.
    mutating func push(_ slot: Int, to id: UInt64, on route: PushQueue.Route, now: Int64) {
        guard let lane = lanes[slot], let client = clients[lane.client],
            let address = client.addresses[id]
        else {
            lanes[slot]?.attempts.setUsable(id, false)
            return
        }
        let start = nextStart(of: lane, at: id)
        let new =
            lane.sort.isStart
            ? start?.said : stale(of: lane.client, [slot], since: { $0.unsaid(at: id) })
        guard let own = new else {
            let position = position
            lanes[slot]?.attempts.nothingIsStale(at: position)
            return
        }
        var said = PushContent(
            slots: [slot], stale: own.content, since: own.since, start: start)
        // A single push reports the stale content of every category with this address.
        let isRepeat = lane.attempts.hasHeardAll(at: id)
        let idle = idleSlots(of: lane.client, at: id).filter { $0 != slot }
        let others = idle.filter {
            guard let attempts = lanes[$0]?.attempts else { return false }
            return attempts.isOwed && (isRepeat || !attempts.hasHeardAll(at: id))
        }
        let slots = [slot] + others
        if !others.isEmpty,
            let all = stale(of: lane.client, slots, since: { $0.unsaid(at: id) })
        {
            said = PushContent(slots: slots, stale: all.content, since: all.since)
        }
        if said.stale.all {
            said = PushContent(slots: [slot] + idle, stale: said.stale, since: said.since)
        }
        var counted: UnderWay.Counted?
        switch ask(lane, address, said.stale, now: now) {
        case .free: break
        case .counted(let count): counted = count
        case .withheld(let until):
            lanes[slot]?.attempts.withheld(id, until: until)
            return
        }
        if address.service?.replacesPushes ?? false {
            said = withUnread(said, of: lane.client, at: id)
        }
        begin(said, lane.client, id, on: route, counted: counted, isManual: false)
    }

    /// Returns what a service is sent that keeps only the last push for a device out of reach: also
    /// what the client may not have read of earlier pushes to the address.
    private func withUnread(_ said: PushContent, of key: ClientKey, at id: UInt64) -> PushContent {
        let all = (clients[key]?.slots ?? []).filter { slot in
            guard let address = lanes[slot]?.attempts.address(id) else { return false }
            return said.slots.contains(slot) || address.awaitsSign || address.underWay != nil
        }
        guard let whole = stale(of: key, all, since: { $0.unread(at: id) }) else { return said }
        return PushContent(slots: said.slots, stale: whole.content, since: whole.since)
    }

    /// The content of a push, and the targets that it is about.
    struct PushContent {
        let slots: [Int]
        let stale: StaleSet
        let since: UInt64
        var start: RecentStart?
    }

    /// Returns the push targets of a client with this address and no push in flight to it.
    private func idleSlots(of key: ClientKey, at id: UInt64) -> [Int] {
        (clients[key]?.slots ?? []).filter { slot in
            lanes[slot]?.attempts.addresses.contains { $0.id == id && $0.underWay == nil } ?? false
        }
    }

    /// Returns the stale content of some targets of one client since their cursors, and the lowest
    /// of those cursors; `nil` when nothing is stale.
    func stale(
        of key: ClientKey, _ slots: [Int], since cursor: (DeliveryAttempts) -> UInt64
    ) -> (content: StaleSet, since: UInt64)? {
        let told = slots.compactMap { lanes[$0] }
        guard let first = told.first, let client = clients[key] else { return nil }
        // Cursors do not cover recommendation sets; those depend on their own confirmations.
        let paying = told.filter { $0.sort != .recommendations }
        let since = (paying.isEmpty ? told : paying).map { cursor($0.attempts) }.min() ?? 0
        let content = shard.poll(
            told.count == 1 ? first.record : client.record.narrowed(to: told.map(\.sort)),
            app: key.app, since: point((paying.first ?? first).sort, since), kinds: nil)
        guard let content, !content.isEmpty else { return nil }
        return (content, since)
    }

    /// Adds the action that sends a push.
    mutating func begin(
        _ said: PushContent, _ key: ClientKey, _ id: UInt64, on route: PushQueue.Route,
        counted: UnderWay.Counted?, isManual: Bool
    ) {
        let told = said.slots.compactMap { lanes[$0] }
        guard let first = told.first, let client = clients[key], let address = client.addresses[id]
        else { return }
        changed.insert(key)
        let number = nextNumber()
        // A push that starts an activity says nothing of later starts.
        let position = said.start?.sequence ?? position
        // The content decides whether it is the same message as in the previous attempt.
        let content = hash(said.stale.words)
        let message = clients[key]?.addresses[id]?.webhook?.attempt(
            saying: content, isManual: isManual)
        if !isManual {
            for slot in said.slots {
                lanes[slot]?.attempts.began(
                    id, number: number, at: position, since: said.since)
            }
        }
        queue.began(route)
        underWay[number] = UnderWay(
            client: key, sorts: told.map(\.sort), address: id, position: position,
            since: said.since, message: message, route: route, isManual: isManual,
            counted: counted)
        actions.append(
            .push(
                DuePush(
                    number: number, client: key, sorts: told.map(\.sort),
                    cause: isManual ? .manual : first.attempts.cause(at: id),
                    address: address.address,
                    environment: address.environment?.current ?? .production,
                    mayTryOtherEnvironment: !isManual
                        && (address.environment?.mayTryOther ?? false),
                    content: said.stale, position: position,
                    urgency: first.attempts.urgency,
                    failures: first.attempts.address(id)?.failures ?? 0,
                    registeredAt: client.addressedAt,
                    message: hash(
                        hash(key.app), hash(key.client), id, content, message?.message ?? 0),
                    activity: activity(
                        of: first, at: address.address, counted?.account, starting: said.start))))
    }

    /// Returns the Live Activity that a push is for; `nil` for any other push, and when the catalog
    /// does not declare its type.
    func activity(
        of lane: PushTarget, at address: DeliveryAddress, _ account: PushBudget.Account? = nil,
        starting start: RecentStart? = nil
    ) -> DuePush.Activity? {
        let started = start.map {
            RegisteredActivity(
                type: $0.start.type, id: $0.start.id, attributes: $0.start.attributes.comparable)
        }
        guard address.apns?.type == .liveactivity, let activity = started ?? lane.activity,
            let catalog = shard.ruleSet(of: lane.client.app)?.catalog,
            let source = catalog.activity(type: activity.type)?.content
        else { return nil }
        return DuePush.Activity(
            type: activity.type, id: activity.id, attributes: activity.attributes, source: source,
            priority: account == .quietActivities ? 5 : 10, start: start)
    }

    /// Returns the timestamp of a push for a Live Activity. Call it before asking for its content.
    package mutating func stamp(_ order: DuePush, wall seconds: Int64) -> Int64 {
        let seconds = max(seconds, stampMin)
        guard let sort = order.sorts.first, let slot = slot(of: order.client, sort) else {
            return seconds
        }
        changed.insert(order.client)
        return lanes[slot]?.attempts.stamped(wall: seconds) ?? seconds
    }

    /// Returns the point after which a category is checked for staleness. Recommendation sets
    /// depend only on their own confirmations.
    func point(_ sort: PushCategory, _ cursor: UInt64) -> ResumePoint {
        guard cursor > 0 else { return .everything }
        return .after(sort == .recommendations ? position : cursor)
    }

    /// The decision of the budget about a push.
    private enum Permission {
        /// The push is not counted.
        case free
        /// The push is allowed, and was counted.
        case counted(UnderWay.Counted)
        /// The push is not allowed before this time.
        case withheld(until: Int64)
    }

    private mutating func ask(
        _ lane: PushTarget, _ address: PushAddress, _ stale: StaleSet, now: Int64
    ) -> Permission {
        guard let type = address.address.budgeted else { return .free }
        if isStopped(lane.client.app, address) { return .withheld(until: .max) }
        let kinds = kinds(stale, lane.record)
        var budget = clients[lane.client]?.budget ?? PushBudget(terms.budget)
        let before = budget.lastPushes(of: kinds)
        let verdict = budget.ask(
            type, isStart: lane.sort.isStart, stale: kinds, urgency: lane.attempts.urgency,
            now: now)
        clients[lane.client]?.budget = budget
        switch verdict {
        case .withhold(let until): return .withheld(until: until)
        case .push(let account):
            return .counted(UnderWay.Counted(account: account, before: before))
        }
    }

    func isStopped(_ app: String, _ address: PushAddress) -> Bool {
        guard !stops.isEmpty, let service = address.service else { return false }
        let place = AppService(app: app, service)
        return stops.contains(Stop(place: place, topic: nil))
            || stops.contains(Stop(place: place, topic: Self.topic(address)))
    }

    private static func topic(_ address: PushAddress) -> String? {
        address.address.apns.map { $0.topic ?? $0.pushType }
    }

    func kinds(_ stale: StaleSet, _ record: ClientRecord) -> [PushBudget.Kind] {
        let names =
            stale.all ? record.registration.widgets.map(\.kind) : stale.names.map(\.kind)
        // A closure that used `self` would copy the scheduler.
        let (hash, intervals, interval) = (hash, terms.intervals, terms.interval)
        return Set(names).map { PushBudget.Kind(hash($0), interval: intervals[$0] ?? interval) }
    }

    // MARK: Streams

    /// Returns whether the scheduler knows enough of what the client's streams sent to push now. If
    /// not, it requests their id: a stream that opened during a collapse window has windows of its
    /// own, which only its event loop knows.
    mutating func knowsSent(_ slot: Int, for route: PushQueue.Route) -> Bool {
        guard let lane = lanes[slot], !lane.isPushed, isStreaming(lane.client),
            let state = clients[lane.client]?.sent, shard.collapses(app: lane.client.app)
        else { return true }
        let key = lane.client
        switch state {
        case .read: return true
        case .requested: return false
        case .unknown:
            clients[key]?.sent = .requested
            sentRequests[key] = route
            queue.began(route)
            actions.append(.readSent(key))
            return false
        }
    }

    /// Decides the pushes to a client that waited for the id of its streams.
    ///
    /// - Parameter sent: The id; `nil` if it could not be read.
    package mutating func received(
        sentUpTo sent: UInt64?, about key: ClientKey, now: Int64
    ) {
        guard clients[key]?.sent == .requested else { return }
        // It is as old as this call: pushes that become due later need it anew.
        clients[key]?.sent = .read
        if let route = sentRequests.removeValue(forKey: key) { queue.ended(route) }
        let id = sent ?? streamID(of: key)
        visit(key, now: now) { lane, _ in lane.attempts.streamsSent(upTo: id, now: now) }
        clients[key]?.sent = .unknown
        drainQueue(now: now)
    }

    // MARK: Results

    /// Returns whether the client has acknowledged everything that a push reports.
    package func isAcknowledged(_ push: DuePush) -> Bool {
        push.sorts.allSatisfy { sort in
            let lane = slot(of: push.client, sort).flatMap { lanes[$0] }
            return lane?.attempts.confirmed ?? 0 >= push.content.sequence
        }
    }

    /// Records that the content for a push has arrived, so that the next question may be asked.
    ///
    /// - Parameter isNew: Whether the source was asked for it.
    /// - Returns: Whether the push may still be sent.
    @discardableResult
    package mutating func contentArrived(
        _ number: UInt64, isNew: Bool = true, now: Int64
    ) -> Bool {
        guard let route = underWay[number]?.route, route.source != nil else { return false }
        underWay[number]?.route.source = nil
        queue.ended(route)
        if isNew { succeeded(route) }
        drainQueue(now: now)
        return isWanted(number)
    }

    /// Returns whether a push may still be sent. Meanwhile its client or activity may have gone, or
    /// ended, its token may belong to another client, and a start may not name the client any more.
    private func isWanted(_ number: UInt64) -> Bool {
        guard let push = underWay[number], let sort = push.sorts.first,
            let lane = slot(of: push.client, sort).flatMap({ lanes[$0] }),
            let state = lane.attempts.address(push.address), !state.hasEnded
        else { return false }
        if push.isManual {
            let address = clients[push.client]?.addresses[push.address]?.address
            return address.map { owns($0, push.client) } ?? false
        }
        guard state.underWay?.number == number else { return false }
        return !sort.isStart
            || owedStarts(of: lane, after: 0).contains { $0.sequence == push.position }
    }

    private mutating func succeeded(_ route: PushQueue.Route) {
        sources[route] = nil
        queue.resume(route)
    }

    /// Records that a content source did not answer a push's question.
    private mutating func failed(
        _ failure: ContentFailure, retryAfter: Int64?, _ push: UnderWay, number: UInt64, now: Int64,
        random: UInt64
    ) {
        let route = push.route
        // Before, another source may have been asked.
        guard let type = route.source, number > declared[route.app] ?? 0 else { return }
        var source = sources[route] ?? SourceHealth()
        let isCounted = source.failed(
            failure, push: number, of: push.client, lastPush: lastNumber, retryAfter: retryAfter,
            now: now, random: random)
        sources[route] = source
        if source.isDown, source.until > now {
            queue.pause(route)
            nextResumption = min(nextResumption, source.until)
        }
        guard isCounted, source.failures >= StatusCounts.failuresMin else { return }
        actions.append(.sourceFailed(app: route.app, type: type, failure))
    }

    /// Records the result of a push. Only the first result of each push counts.
    ///
    /// - Parameters:
    ///   - ends: Whether its content ended a Live Activity.
    ///   - random: Spreads the retries of pushes that failed together.
    package mutating func finished(
        _ number: UInt64, _ result: PushResult, ends: Bool = false, now: Int64, random: UInt64
    ) {
        guard let push = underWay.removeValue(forKey: number) else { return }
        defer {
            if underWay.isEmpty {
                mended.removeAll()
                declared.removeAll()
            }
        }
        queue.ended(push.route, result)
        if case .content(.failed(let failure, let retryAfter)) = result {
            failed(
                failure, retryAfter: retryAfter, push, number: number, now: now, random: random)
        }
        changed.insert(push.client)
        if push.isManual { return finishManual(push, result, ends: ends, now: now) }
        let slots = push.sorts.compactMap { slot(of: push.client, $0) }.filter {
            // An address that was removed and registered again has no earlier pushes.
            lanes[$0]?.attempts.address(push.address)?.underWay?.number == number
        }
        if !slots.isEmpty {
            if result != .notSent {
                for slot in slots { lanes[slot]?.failure = result.failure }
            }
            switch result {
            case .service(let verdict, let mayHaveArrived, _):
                if verdict != .delivered {
                    giveBack(push.counted, of: push.client, isCounted: mayHaveArrived, now: now)
                }
                finish(
                    slots, push, isOutdated(verdict, number, push) ? .retry(.atOnce) : verdict,
                    ends: ends, now: now, random: random)
            case .webhook(let response):
                finish(slots, push, response, now: now, random: random)
            case .content(let outcome):
                giveBack(push.counted, of: push.client, now: now)
                if case .failed(let failure, let retryAfter) = outcome {
                    // Its source may answer others: this activity waits longer and longer.
                    let isOver = retryAfter == nil && makesWay(push, for: failure)
                    finish(
                        slots, push, isOver ? .giveUp : .retry(.connection), ends: false,
                        now: now, random: random)
                    for slot in slots where isOver {
                        lanes[slot]?.attempts.recovered(push.address)
                    }
                    break
                }
                for slot in slots {
                    lanes[slot]?.attempts.failed(push.address, until: now, isCounted: false)
                    lanes[slot]?.attempts.recovered(push.address)
                    lanes[slot]?.settled(upTo: push.position)
                }
            case .notSent:
                giveBack(push.counted, of: push.client, now: now)
                for slot in slots {
                    lanes[slot]?.attempts.failed(
                        push.address, until: now.later(by: 1_000), isCounted: false)
                }
            }
            // Targets that wait come before those that became stale meanwhile.
            drainQueue(now: now)
            // The health of an address affects all categories with it.
            for slot in clients[push.client]?.slots ?? [] { look(slot, now: now) }
        }
        drainQueue(now: now)
    }

    /// Reverts a push that was counted to a client's budget.
    private mutating func giveBack(
        _ counted: UnderWay.Counted?, of key: ClientKey, isCounted: Bool = false, now: Int64
    ) {
        guard let counted else { return }
        clients[key]?.budget?.giveBack(
            counted.account, before: counted.before, isCounted: isCounted, now: now)
    }

    private mutating func finish(
        _ slots: [Int], _ push: UnderWay, _ verdict: APNsReaction.Verdict, ends: Bool, now: Int64,
        random: UInt64
    ) {
        guard let address = clients[push.client]?.addresses[push.address],
            let service = address.service
        else { return }
        let all =
            verdict == .delivered
            ? [] : Set(slots).union(idleSlots(of: push.client, at: push.address))
        switch verdict {
        case .delivered:
            // A push for a Live Activity does not wake the app, which could then answer.
            let awaits = address.address.apns?.type != .liveactivity
            for slot in slots {
                lanes[slot]?.attempts.delivered(
                    push.address, now: now, awaits: awaits, ends: ends)
                if lanes[slot]?.sort.isStart ?? false {
                    lanes[slot]?.attempts.started(at: push.position)
                }
                // An activity is started once, whichever token is registered afterwards.
                lanes[slot]?.settled(upTo: push.position)
            }
            if case .apns(let environment) = service {
                clients[push.client]?.addresses[push.address]?.environment?.worked(in: environment)
            }
        case .dropAddress:
            for slot in all { lanes[slot]?.attempts.setUsable(push.address, false) }
            clients[push.client]?.addresses[push.address]?.isDead = true
            actions.append(.drop(push.client, address.address))
        case .quarantineAddress:
            for slot in all { lanes[slot]?.attempts.setUsable(push.address, false) }
        case .tryOtherEnvironment:
            clients[push.client]?.addresses[push.address]?.environment?.swap()
            for slot in slots { lanes[slot]?.attempts.failed(push.address, until: now) }
        case .retry(let wait):
            let attempts = slots.first.flatMap { lanes[$0]?.attempts }
            let milliseconds = wait.milliseconds(
                failures: attempts?.address(push.address)?.failures ?? 0,
                urgency: attempts?.urgency ?? .normal, random: random)
            for slot in all {
                lanes[slot]?.attempts.failed(push.address, until: now.later(by: milliseconds))
            }
        case .giveUp:
            for slot in slots { lanes[slot]?.attempts.gaveUp(push.address) }
        case .stop(let scope):
            stops.insert(
                Stop(
                    place: AppService(app: push.client.app, service),
                    topic: scope == .credential ? nil : Self.topic(address)))
            for slot in slots { lanes[slot]?.attempts.failed(push.address, until: now) }
        }
    }

    private mutating func finish(
        _ slots: [Int], _ push: UnderWay, _ response: WebhookResponse?, now: Int64,
        random: UInt64
    ) {
        guard let message = push.message,
            let address = clients[push.client]?.addresses[push.address]?.address,
            let outcome = clients[push.client]?.addresses[push.address]?.webhook?.answered(
                response, to: message, now: now, random: random)
        else { return }
        for slot in slots where outcome == .delivered {
            lanes[slot]?.attempts.delivered(push.address, now: now)
        }
        // The health of an endpoint affects all categories with this address.
        for slot in Set(slots).union(idleSlots(of: push.client, at: push.address)) {
            switch outcome {
            case .delivered: lanes[slot]?.attempts.recovered(push.address)
            case .retry(let at): lanes[slot]?.attempts.failed(push.address, until: at)
            case .disabled, .failed: lanes[slot]?.attempts.failed(push.address, until: now)
            }
        }
        guard case .disabled(let reason) = outcome else { return }
        for slot in clients[push.client]?.slots ?? [] {
            lanes[slot]?.attempts.setUsable(push.address, false)
        }
        actions.append(.disabled(push.client, address, reason))
    }
}

extension StaleSet {
    /// The content as one text.
    fileprivate var words: String {
        var text = "\(sequence)\0\(all ? "all" : "")"
        for name in names {
            text += "\0\(name.target.rawValue)\0\(name.kind)"
            for parameter in name.parameters {
                text += "\0\(parameter.name)\0\(parameter.value ?? "\u{1}")"
            }
            text += "\0\u{2}"
        }
        return text
    }
}
