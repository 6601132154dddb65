import GatewayCore
import WidgetModel

extension PushScheduler {
    // MARK: Registrations

    /// Applies a first or changed registration of a client. Owed notifications stay owed.
    package mutating func registered(_ record: ClientRecord, app: String, now: Int64) {
        let key = ClientKey(app: app, client: record.client)
        register(record, key, saved: nil, told: nil, now: now, wall: 0)
    }

    /// Restores a client from before the start of the program, with its persisted state.
    ///
    /// Clients are restored in the order in which they stated their addresses, so that a token
    /// belongs to the last of them.
    ///
    /// - Parameter told: The sequence up to which another node told the client everything; 0 if
    ///   that is not known.
    package mutating func restore(
        _ record: ClientRecord, app: String, _ saved: SavedClient?, told: UInt64 = 0, now: Int64,
        wall: Int64
    ) {
        let key = ClientKey(app: app, client: record.client)
        register(record, key, saved: saved, told: told, now: now, wall: wall)
    }

    private mutating func register(
        _ record: ClientRecord, _ key: ClientKey, saved: SavedClient?, told: UInt64?, now: Int64,
        wall: Int64
    ) {
        var client = clients[key] ?? PushClient(record)
        client.record = record
        var attempts: [PushCategory: DeliveryAttempts] = [:]
        for slot in client.slots {
            guard let lane = lanes[slot] else { continue }
            attempts[lane.sort] = lane.attempts
            shard.close(lane.stream)
            lanes[slot] = nil
        }
        client.slots = []
        // One that registers has built what it shows.
        client.told = max(client.told, told ?? (clients[key] == nil ? position : 0))
        if let saved {
            client.budget = saved.budget.map {
                PushBudget($0, terms.budget, now: now, wall: wall)
            }
            for lane in saved.lanes {
                attempts[lane.sort] = DeliveryAttempts(lane.attempts, now: now, wall: wall)
            }
        }
        let sorts = PushCategory.all(of: record.registration)
        guard !sorts.isEmpty else {
            if clients[key] != nil { forget(key) }
            return
        }
        let isNamedAgain = record.addressedAt != client.addressedAt
        client.addressedAt = record.addressedAt
        let before = client.addresses
        client.addresses = [:]
        for address in sorts.flatMap(\.addresses) {
            let id = address.id(hash)
            client.addresses[id] = before[id] ?? PushAddress(address)
            if isNamedAgain, client.addresses[id]?.webhook?.disabled != nil {
                client.addresses[id]?.webhook?.enable()
                for (sort, _) in attempts { attempts[sort]?.setUsable(id, true) }
            }
            if let known = saved?.addresses.first(where: { $0.id == id }) {
                client.addresses[id]?.take(known, now: now, wall: wall)
            }
        }
        clients[key] = client
        changed.insert(key)
        for (id, address) in before where client.addresses[id] == nil {
            release(address.address, key)
        }
        for address in client.addresses.values { claim(address.address, for: key) }
        for (sort, addresses) in sorts {
            open(
                sort, addresses: addresses.map { $0.id(hash) }, record: record.narrowed(to: sort),
                client: key, attempts: attempts[sort], told: told ?? 0, now: now)
        }
    }

    /// Opens the stream of a category, and checks what is stale already.
    private mutating func open(
        _ sort: PushCategory, addresses: [UInt64], record: ClientRecord, client key: ClientKey,
        attempts known: DeliveryAttempts?, told: UInt64, now: Int64
    ) {
        guard
            let stream = shard.open(
                record, app: key.app, since: .after(shard.position), kinds: nil)
        else { return }
        shard.clearOutput()
        var attempts = known ?? DeliveryAttempts(confirmed: record.since)
        attempts.register(addresses)
        for id in addresses {
            guard let address = clients[key]?.addresses[id]?.address else { continue }
            attempts.setConfigured(id, reaches(address, of: key.app))
        }
        let slot = Int(stream.slot)
        while lanes.count <= slot { lanes.append(nil) }
        let since = max(attempts.confirmed, told)
        let stale = shard.poll(record, app: key.app, since: point(sort, since), kinds: nil)
        if let stale, !stale.isEmpty {
            attempts.changed(at: stale.sequence, after: since, urgency: .normal, now: now)
        }
        if told > 0 { attempts.takeOver(told: told) }
        lanes[slot] = PushTarget(
            stream: stream, client: key, sort: sort, record: record, attempts: attempts)
        clients[key]?.slots.append(slot)
        look(slot, now: now)
    }

    /// Records a client's confirmation of recommendation sets.
    package mutating func confirmed(_ record: ClientRecord, app: String, now: Int64) {
        let key = ClientKey(app: app, client: record.client)
        if let known = clients[key]?.record {
            clients[key]?.record = known.confirming(record.confirmed)
        }
        visit(key, now: now) { lane, scheduler in
            guard lane.sort.hasSets else { return }
            lane.record = lane.record.confirming(record.confirmed)
            lane.attempts.acknowledged(scheduler.confirmed(lane, by: lane.acknowledged))
        }
    }

    /// Removes a client.
    package mutating func removed(_ key: ClientKey) {
        guard clients[key] != nil else { return }
        forget(key)
    }

    mutating func forget(_ key: ClientKey) {
        guard let client = clients.removeValue(forKey: key) else { return }
        if let route = evidenceRequests.removeValue(forKey: key) { queue.ended(route) }
        for slot in client.slots {
            if let lane = lanes[slot] { shard.close(lane.stream) }
            lanes[slot] = nil
        }
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

    /// Returns whether a push token belongs to the client, that is, no other client has registered
    /// it since.
    func owns(_ address: DeliveryAddress, _ key: ClientKey) -> Bool {
        token(of: address, key.app).map { owners[$0] == key } ?? true
    }

    private mutating func release(_ address: DeliveryAddress, _ key: ClientKey) {
        guard let token = token(of: address, key.app), owners[token] == key else { return }
        owners[token] = nil
    }

    private func token(of address: DeliveryAddress, _ app: String) -> UInt64? {
        address.apns.map { hash([app, $0.pushType, $0.token].joined(separator: "\0")) }
    }

    // MARK: Activity of clients

    /// Records the opening of a stream at a cursor; 0 when everything was stale for it.
    package mutating func streamOpened(_ key: ClientKey, resuming cursor: UInt64, now: Int64) {
        visit(key, now: now) { lane, scheduler in
            lane.attempts.streamOpened(resuming: scheduler.confirmed(lane, by: cursor), now: now)
        }
    }

    /// Records the end of a stream.
    package mutating func streamEnded(_ key: ClientKey, now: Int64) {
        visit(key, now: now) { lane, _ in lane.attempts.streamEnded(now: now) }
    }

    /// Records a poll of the client.
    package mutating func polled(_ key: ClientKey, now: Int64) {
        visit(key, now: now) { lane, _ in lane.attempts.polled() }
    }

    /// Records that the client acknowledged everything up to a cursor.
    package mutating func acknowledged(_ key: ClientKey, upTo cursor: UInt64, now: Int64) {
        visit(key, now: now) { lane, scheduler in
            lane.acknowledged = max(lane.acknowledged, cursor)
            lane.attempts.acknowledged(scheduler.confirmed(lane, by: cursor))
        }
    }

    /// Handles the loss of a log tail: everything is stale for every client.
    package mutating func forgetPositions(now: Int64) {
        // Pushes in flight have void positions, so their results confirm nothing.
        for number in underWay.keys { underWay[number]?.position = 0 }
        for slot in lanes.indices {
            guard let key = lanes[slot]?.client else { continue }
            changed.insert(key)
            lanes[slot]?.attempts.forgetPositions(head: shard.position, now: now)
            look(slot, now: now)
        }
    }

    /// Returns the sequence that a cursor confirms for a push target. A cursor does not cover
    /// recommendation sets: while one is owed nothing is confirmed, and afterwards all of them are.
    func confirmed(_ lane: PushTarget, by cursor: UInt64) -> UInt64 {
        guard lane.sort.hasSets else { return cursor }
        let owed = shard.poll(
            lane.record.narrowed(to: .recommendations), app: lane.client.app,
            since: .after(position), kinds: nil)
        guard owed?.isEmpty ?? true else { return 0 }
        return lane.sort == .recommendations ? position : cursor
    }

    mutating func visit(
        _ key: ClientKey, now: Int64, _ body: (inout PushTarget, PushScheduler) -> Void
    ) {
        guard let slots = clients[key]?.slots else { return }
        changed.insert(key)
        for slot in slots {
            guard var lane = lanes[slot] else { continue }
            body(&lane, self)
            lanes[slot] = lane
            look(slot, now: now)
        }
    }

    /// Returns the slot of a category of a client.
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

extension PushCategory {
    /// Whether the category includes recommendation sets.
    var hasSets: Bool { self == .recommendations || self == .everything }
}
