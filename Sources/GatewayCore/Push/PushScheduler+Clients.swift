import WidgetModel

extension PushScheduler {
    // MARK: Registrations

    /// The known progress of a client that had no pushes until now.
    package struct Evidence: Sendable {
        /// The highest cursor that the client acknowledged, or resumed a stream with; 0 for none.
        package var confirmed: UInt64
        /// Whether a stream of the client is open.
        package var isStreaming: Bool

        /// Nothing is known.
        package static let none = Evidence(confirmed: 0, isStreaming: false)

        package init(confirmed: UInt64, isStreaming: Bool) {
            self.confirmed = confirmed
            self.isStreaming = isStreaming
        }
    }

    /// The clients that can be pushed to.
    package var keys: [ClientKey] { Array(clients.keys) }

    /// Applies a first or changed registration of a client. What was owed stays owed, and the
    /// registration itself adds nothing.
    ///
    /// - Parameters:
    ///   - heard: The contact of a client that had no address until now.
    ///   - wall: The time in ms since 1970.
    package mutating func registered(
        _ record: ClientRecord, app: String, heard: Evidence = .none, now: Int64, wall: Int64 = 0
    ) {
        let key = ClientKey(app: app, client: record.client)
        for slot in register(record, key, heard: heard, now: now, wall: wall) {
            look(slot, now: now)
        }
    }

    /// Restores a client from before the start of the program, with its stored state. Nothing is
    /// pushed to it before ``lookAtRestored(now:)``.
    ///
    /// Clients must be restored in the order in which they stated their addresses, so that a token
    /// belongs to the last of them.
    ///
    /// - Parameters:
    ///   - clear: The sequence up to which the stored state contains everything that is owed; 0 if
    ///     that is not known.
    ///   - heard: The contact of the client since its state was stored.
    package mutating func restore(
        _ record: ClientRecord, app: String, _ saved: SavedClient?, clear: UInt64 = 0,
        heard: Evidence = .none, now: Int64, wall: Int64
    ) {
        let key = ClientKey(app: app, client: record.client)
        stampMin = max(stampMin, (wall / 1_000).later(by: DeliveryAttempts.stampsUnsaved))
        let slots = register(
            record, key, saved, isRestored: true, clear: clear, heard: heard, now: now, wall: wall)
        for slot in slots {
            if let stream = lanes[slot]?.stream { restored.append(stream) }
        }
    }

    /// Begins to push to the clients that were restored.
    package mutating func lookAtRestored(now: Int64) {
        guard !restored.isEmpty else { return }
        let slots = restored.filter { lanes[Int($0.slot)]?.stream == $0 }.map { Int($0.slot) }
        restored = []
        lookTogether(slots, now: now)
    }

    /// Returns the slots of the client's categories.
    private mutating func register(
        _ record: ClientRecord, _ key: ClientKey, _ saved: SavedClient? = nil,
        isRestored: Bool = false, clear: UInt64 = 0, heard: Evidence, now: Int64, wall: Int64
    ) -> [Int] {
        guard record.isPushable || clients[key] != nil || saved != nil else { return [] }
        let isNew = clients[key] == nil
        var client = clients[key] ?? PushClient(record)
        client.record = record
        // What is known of each category, and the sequence up to which that is complete.
        var known: [PushCategory: (attempts: DeliveryAttempts, position: UInt64)] = [:]
        for slot in client.slots {
            guard let lane = lanes[slot] else { continue }
            known[lane.sort] = (lane.attempts, shard.heartbeat(lane.stream) ?? 0)
            close(slot)
        }
        client.slots = []
        if let saved {
            client.budget = saved.budget
            // The limits may have changed since it was read.
            client.budget?.adopt(terms.budget, now: now)
            for (sort, var attempts) in saved.lanes {
                attempts.restartGrace(now: now)
                known[sort] = (attempts, max(attempts.reported, clear))
            }
        }
        let isNamedAgain = record.addressedAt != client.addressedAt
        client.addressedAt = record.addressedAt
        let before = client.addresses
        client.addresses = [:]
        let sorts = PushCategory.all(of: record.registration)
        for address in sorts.flatMap(\.addresses) {
            let id = address.id(hash)
            client.addresses[id] = before[id] ?? PushAddress(address)
            if isNamedAgain, client.addresses[id]?.webhook?.disabled != nil {
                client.addresses[id]?.webhook?.enable()
                for sort in known.keys { known[sort]?.attempts.setUsable(id, true) }
            }
            if let state = saved?.addresses[id] { client.addresses[id]?.take(state) }
        }
        if before.isEmpty {
            for sort in known.keys
            where sort != .recommendations && !record.registration.isPushed(sort) {
                known[sort]?.attempts.confirm(heard.confirmed)
            }
        }
        clients[key] = client
        changed.insert(key)
        for (id, address) in before where client.addresses[id] == nil {
            release(address.address, key)
        }
        for address in client.addresses.values { claim(address.address, for: key) }
        // A client that registers has built what is new. Sets depend on their own confirmations.
        let begin = isNew ? max(record.since, heard.confirmed, clear) : shard.position
        /// Returns what is known of the starts that an activity may come from.
        func origin(of sort: PushCategory) -> DeliveryAttempts? {
            guard case .activity(let id) = sort,
                let type = record.registration.activities.first(where: { $0.id == id })?.type
            else { return nil }
            return known[.start(type: type)]?.attempts
        }
        /// Returns the sequence up to which a category that is not known is owed nothing.
        func start(of sort: PushCategory) -> UInt64 {
            // No cursor covers what only its own pushes confirm.
            let isUncovered = isRestored && record.registration.isPushed(sort)
            let begin = isUncovered ? max(record.since, clear) : begin
            switch sort {
            case .recommendations: return 1
            case .start: return isRestored ? begin : shard.position
            case .activity:
                // It may come from an accepted start, and then has its content.
                let started = origin(of: sort)?.started(by: wall / 1_000) ?? 0
                return started == 0 ? begin : min(begin, started)
            case .timelines, .control: return begin
            }
        }
        for (sort, addresses) in sorts
        where !addresses.isEmpty || known[sort] != nil || record.registration.has(sort) {
            let since = start(of: sort)
            let isPushed = record.registration.isPushed(sort)
            var new = DeliveryAttempts(
                confirmed: isPushed ? since : min(since, record.since), told: since)
            // A device shows nothing that is older than the start.
            new.stamp = origin(of: sort)?.stamp ?? 0
            open(
                sort, addresses: addresses.map { $0.id(hash) }, record: record.narrowed(to: [sort]),
                client: key, known[sort]?.attempts ?? new, after: known[sort]?.position ?? since,
                isStreaming: before.isEmpty && heard.isStreaming, now: now)
        }
        // A start that waits is pushed to the next token; an activity may come from an earlier one.
        for type in known.keys.compactMap(\.startedType).sorted() {
            let sort = PushCategory.start(type: type)
            guard let (attempts, position) = known[sort],
                !sorts.contains(where: { $0.sort == sort }),
                attempts.started(by: wall / 1_000) != 0
                    || !starts.starts(
                        of: key.app, type: type, after: attempts.confirmed, for: record.attributes
                    ).isEmpty
            else { continue }
            open(
                sort, addresses: [], record: record.narrowed(to: [sort]), client: key, attempts,
                after: position, isStreaming: false, now: now)
        }
        return clients[key]?.slots ?? []
    }

    /// Opens the stream of a category, and checks what became stale after a sequence.
    private mutating func open(
        _ sort: PushCategory, addresses: [UInt64], record: ClientRecord, client key: ClientKey,
        _ known: DeliveryAttempts, after since: UInt64, isStreaming: Bool, now: Int64
    ) {
        guard
            let stream = shard.open(
                record, app: key.app, since: .after(shard.position), kinds: nil)
        else { return }
        shard.clearOutput()
        let isPushed = record.registration.isPushed(sort)
        var attempts = known
        attempts.streams = isPushed ? 0 : streams[key]?.count { $0 == nil } ?? 0
        // A removed item is owed nothing, and its grace period must not count for another item.
        if attempts.isOwed, !sort.isStart,
            shard.poll(record, app: key.app, since: point(sort, attempts.confirmed), kinds: nil)?
                .isEmpty ?? true
        {
            attempts.nothingIsOwed(at: shard.position)
        }
        attempts.register(addresses, now: now)
        for id in addresses {
            guard let address = clients[key]?.addresses[id]?.address else { continue }
            attempts.setConfigured(id, reaches(address, of: key.app))
        }
        let slot = Int(stream.slot)
        while lanes.count <= slot { lanes.append(nil) }
        let stale =
            sort.isStart
            ? nil : shard.poll(record, app: key.app, since: point(sort, since), kinds: nil)
        // A set that is owed already is not owed anew by a floor that passed.
        let isNew = sort != .recommendations || !attempts.isOwed
        if let stale, !stale.isEmpty, isNew || stale.sequence > since {
            attempts.changed(
                at: stale.sequence, after: min(since, max(stale.sequence, 1) - 1),
                urgency: .normal, now: now)
        }
        // The loop of the stream reports it a moment later.
        if isStreaming, !isPushed { attempts.streamIsOpen(sentUpTo: position, now: now) }
        var lane = PushTarget(
            stream: stream, client: key, sort: sort, record: record, attempts: attempts)
        if let last = owedStarts(of: lane, after: since).last {
            lane.attempts.changed(
                at: last.sequence, after: since, urgency: last.start.urgency, now: now)
        }
        lanes[slot] = lane
        clients[key]?.slots.append(slot)
        hold(slot, isOpen: !addresses.isEmpty)
    }

    private mutating func close(_ slot: Int) {
        hold(slot, isOpen: false)
        if let lane = lanes[slot] { shard.close(lane.stream) }
        lanes[slot] = nil
    }

    /// Records a client's confirmation of recommendation sets.
    package mutating func confirmed(_ record: ClientRecord, app: String, now: Int64) {
        let key = ClientKey(app: app, client: record.client)
        if let known = clients[key]?.record {
            clients[key]?.record = known.confirming(record.confirmed)
        }
        visit(key, now: now) { lane, scheduler in
            guard lane.sort == .recommendations else { return }
            lane.record = lane.record.confirming(record.confirmed)
            lane.attempts.confirm(scheduler.confirmed(lane, by: 0))
        }
    }

    package mutating func removed(_ key: ClientKey) {
        guard clients[key] != nil else { return }
        forget(key)
    }

    /// Stops the pushes to a client that another gateway takes over.
    package mutating func release(_ key: ClientKey) {
        forget(key)
        changed.remove(key)
    }

    private mutating func forget(_ key: ClientKey) {
        guard let client = clients.removeValue(forKey: key) else { return }
        if let route = sentRequests.removeValue(forKey: key) { queue.ended(route) }
        for slot in client.slots { close(slot) }
        for address in client.addresses.values { release(address.address, key) }
        changed.insert(key)
    }

    // MARK: Push tokens

    /// Assigns a push token to the client that registered it last.
    private mutating func claim(_ address: DeliveryAddress, for key: ClientKey) {
        guard let token = token(of: address, key.app) else { return }
        let before = owners.updateValue(key, forKey: token)
        guard let before, before != key else { return }
        for (id, known) in clients[before]?.addresses ?? [:]
        where self.token(of: known.address, before.app) == token {
            actions.append(.drop(before, known.address))
            for slot in clients[before]?.slots ?? [] {
                lanes[slot]?.attempts.setUsable(id, false)
            }
        }
    }

    /// Returns whether a push token belongs to the client: no other client registered it since.
    func owns(_ address: DeliveryAddress, _ key: ClientKey) -> Bool {
        token(of: address, key.app).map { owners[$0] == key } ?? true
    }

    private mutating func release(_ address: DeliveryAddress, _ key: ClientKey) {
        guard let token = token(of: address, key.app), owners[token] == key else { return }
        owners[token] = nil
    }

    private func token(of address: DeliveryAddress, _ app: String) -> UInt64? {
        let parts: [String]
        switch address {
        case .stream, .webhook: return nil
        // No token is the id of a channel.
        case .apns(let apns): parts = [apns.pushType, apns.channel.map { "=" + $0 } ?? apns.token]
        case .webPush(let push): parts = ["webpush", push.endpoint]
        case .fcm(let token): parts = ["fcm", token]
        }
        return hash(([app] + parts).joined(separator: "\0"))
    }

    // MARK: Activity of clients

    /// Records the opening of a stream.
    ///
    /// - Parameters:
    ///   - kinds: The kinds that it is limited to; `nil` for all. A limited one says nothing about
    ///     other kinds, and delays no pushes of them.
    ///   - cursor: The cursor that it resumes at; 0 when everything was stale for it.
    package mutating func streamOpened(
        _ key: ClientKey, kinds: Set<String>? = nil, resuming cursor: UInt64, now: Int64
    ) {
        streams[key, default: []].append(kinds)
        visit(key, now: now) { lane, scheduler in
            guard kinds == nil else { return lane.attempts.heard() }
            lane.attempts.streamOpened(resuming: scheduler.confirmed(lane, by: cursor), now: now)
        }
    }

    package mutating func streamEnded(
        _ key: ClientKey, kinds: Set<String>? = nil, now: Int64
    ) {
        if let index = streams[key]?.firstIndex(of: kinds) { streams[key]?.remove(at: index) }
        if streams[key]?.isEmpty == true { streams[key] = nil }
        visit(key, now: now) { lane, _ in
            if kinds == nil { lane.attempts.streamEnded(now: now) }
        }
    }

    /// Returns whether a client has a stream that carries everything.
    func isStreaming(_ key: ClientKey) -> Bool {
        streams[key]?.contains { $0 == nil } ?? false
    }

    package mutating func polled(_ key: ClientKey, now: Int64) {
        visit(key, now: now) { lane, _ in lane.attempts.polled() }
    }

    /// Records that the client acknowledged everything up to a cursor.
    package mutating func acknowledged(_ key: ClientKey, upTo cursor: UInt64, now: Int64) {
        visit(key, now: now) { lane, scheduler in
            lane.attempts.acknowledged(scheduler.confirmed(lane, by: cursor))
        }
    }

    /// Handles the loss of a log tail: everything is stale for every client.
    package mutating func forgetPositions(now: Int64) {
        // Pushes in flight have void positions, so their results confirm nothing.
        for number in underWay.keys { underWay[number]?.position = 0 }
        let slots = lanes.indices.filter { lanes[$0] != nil }
        for slot in slots {
            guard let key = lanes[slot]?.client else { continue }
            changed.insert(key)
            lanes[slot]?.attempts.forgetPositions(head: shard.position, now: now)
            // An activity that may have been started is not started again.
            if lanes[slot]?.sort.isStart == true {
                lanes[slot]?.attempts.confirm(shard.position)
            }
        }
        restored = []
        lookTogether(slots, now: now)
    }

    /// Returns the sequence that a cursor confirms for a push target. A cursor does not cover
    /// recommendation sets: while one is owed nothing is confirmed, and afterwards all of them are.
    func confirmed(_ lane: PushTarget, by cursor: UInt64) -> UInt64 {
        guard lane.sort == .recommendations else { return cursor }
        let owed = shard.poll(
            lane.record, app: lane.client.app, since: .after(position), kinds: nil)
        return owed?.isEmpty ?? true ? position : 0
    }

    mutating func visit(
        _ key: ClientKey, now: Int64, _ body: (inout PushTarget, PushScheduler) -> Void
    ) {
        guard let slots = clients[key]?.slots else { return }
        changed.insert(key)
        for slot in slots {
            guard var lane = lanes[slot], !lane.isPushed else { continue }
            body(&lane, self)
            lanes[slot] = lane
            look(slot, now: now)
        }
    }

    func slot(of key: ClientKey, _ sort: PushCategory) -> Int? {
        clients[key]?.slots.first { lanes[$0]?.sort == sort }
    }
}

extension ClientRecord {
    /// Returns the same client with sets confirmed up to the higher of both sequences.
    fileprivate func confirming(_ sets: [String: UInt64]) -> ClientRecord {
        with(confirmed: confirmed.merging(sets) { max($0, $1) })
    }
}
