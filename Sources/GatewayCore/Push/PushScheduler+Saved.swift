import WidgetModel

extension PushScheduler {
    /// The state of a client as it was stored. Pushes in flight are not included: they are sent
    /// again.
    package struct SavedClient: Sendable {
        /// The owed notifications by category.
        let lanes: [PushCategory: DeliveryAttempts]
        /// The states of the addresses, by their hash.
        let addresses: [UInt64: PushAddress.Saved]
        /// The remaining budget; `nil` before the first push.
        let budget: PushBudget?

        /// Reads what ``PushScheduler/takeChanged(limit:now:wall:)`` returned. The client must be
        /// restored on the clock of `now`, at once or later.
        ///
        /// - Throws: ``UnreadableState``, and errors of the JSON parser.
        package init(
            _ payload: some Sequence<UInt8>, budget terms: PushBudget.Terms, now: Int64, wall: Int64
        ) throws {
            let saved = try SavedMembers(JSONValue(parsing: Array(payload)))
            let lanes = try saved.list("lanes").map { lane in
                (
                    PushCategory(text: try SavedMembers(lane).text("sort")),
                    try DeliveryAttempts(lane, now: now, wall: wall)
                )
            }
            let addresses = try saved.list("addresses").map { address in
                (
                    try SavedMembers(address).bits("id"),
                    try PushAddress.Saved(address, now: now, wall: wall)
                )
            }
            self.lanes = Dictionary(lanes) { $1 }
            self.addresses = Dictionary(addresses) { first, _ in first }
            budget = try saved["budget"].map { try PushBudget($0, terms, now: now, wall: wall) }
        }
    }

    /// The position up to which clients are owed only what their stored state says, once all
    /// that changed is stored.
    package var clear: UInt64 { shard.settled }

    /// Returns clients that changed since they were last stored, at most `limit`, each with its
    /// state as JSON; `nil` for one that gets no more pushes. They then count as stored.
    package mutating func takeChanged(
        limit: Int, now: Int64, wall: Int64
    ) -> [(key: ClientKey, saved: [UInt8]?)] {
        // Taking one at a time would search the whole set for each.
        let keys = Array(changed.prefix(limit))
        var taken: [(key: ClientKey, saved: [UInt8]?)] = []
        taken.reserveCapacity(keys.count)
        for key in keys { taken.append((key, saved(key, now: now, wall: wall))) }
        if keys.count == changed.count { changed = [] } else { changed.subtract(keys) }
        return taken
    }

    /// Marks clients as changed again, because persisting them failed.
    package mutating func putBack(_ keys: some Sequence<ClientKey>) {
        changed.formUnion(keys)
    }

    private func saved(_ key: ClientKey, now: Int64, wall: Int64) -> [UInt8]? {
        guard let client = clients[key] else { return nil }
        // A closure that used `self` would copy the scheduler.
        let states = client.slots.compactMap { [lanes] in lanes[$0] }
        var text = SavedText()
        text.object { text in
            text.list("lanes", states) {
                $1.attempts.save($1.sort, to: &$0, now: now, wall: wall)
            }
            text.list("addresses", client.addresses.keys.sorted()) {
                client.addresses[$1]?.save($1, to: &$0, now: now, wall: wall)
            }
            if let budget = client.budget {
                text.object("budget") { budget.save(to: &$0, now: now, wall: wall) }
            }
        }
        return text.bytes
    }
}

extension PushAddress {
    /// The stored state of an address.
    struct Saved: Sendable {
        var environment: APNsEnvironmentChoice?
        var webhook: WebhookSchedule?

        /// - Throws: ``UnreadableState``.
        init(_ value: JSONValue, now: Int64, wall: Int64) throws {
            let saved = try SavedMembers(value)
            if saved["environment"] != nil { environment = try APNsEnvironmentChoice(saved) }
            webhook = try saved["webhook"].map { try WebhookSchedule($0, now: now, wall: wall) }
        }
    }

    fileprivate func save(_ id: UInt64, to text: inout SavedText, now: Int64, wall: Int64) {
        text.bits("id", id)
        if let environment {
            text.number("environment", Int64(environment.current.rawValue))
            text.number("standing", Int64(environment.standing.rawValue))
        }
        if let webhook { text.object("webhook") { webhook.save(to: &$0, now: now, wall: wall) } }
    }

    /// Restores what was stored of the address.
    mutating func take(_ saved: Saved) {
        if environment != nil, let known = saved.environment { environment = known }
        if webhook != nil, let known = saved.webhook { webhook = known }
    }
}

extension APNsEnvironmentChoice {
    fileprivate init(_ saved: SavedMembers) throws {
        guard
            let current = APNsEnvironment(
                rawValue: UInt8(clamping: try saved.number("environment"))),
            let standing = Status(rawValue: UInt8(clamping: try saved.number("standing")))
        else { throw UnreadableState(description: "a pushed client's environment") }
        self.init(current: current, standing: standing)
    }
}
