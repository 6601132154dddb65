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
        var taken: [(key: ClientKey, saved: [UInt8]?)] = []
        while taken.count < limit, let key = changed.popFirst() {
            taken.append((key, saved(key, now: now, wall: wall)))
        }
        return taken
    }

    /// Marks clients as changed again, because persisting them failed.
    package mutating func putBack(_ keys: some Sequence<ClientKey>) {
        changed.formUnion(keys)
    }

    private func saved(_ key: ClientKey, now: Int64, wall: Int64) -> [UInt8]? {
        guard let client = clients[key] else { return nil }
        let states = client.slots.compactMap { lanes[$0] }
        let addresses = client.addresses.sorted { $0.key < $1.key }
        var object: JSONObject = [
            "lanes": .array(states.map { $0.attempts.saved($0.sort, now: now, wall: wall) }),
            "addresses": .array(addresses.map { $1.saved($0, now: now, wall: wall) }),
        ]
        object["budget"] = client.budget?.saved(now: now, wall: wall)
        return JSONValue.object(object).serialized
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

    fileprivate func saved(_ id: UInt64, now: Int64, wall: Int64) -> JSONValue {
        var object: JSONObject = ["id": .bits(id)]
        if let environment {
            object["environment"] = .integer(Int64(environment.current.rawValue))
            object["standing"] = .integer(Int64(environment.standing.rawValue))
        }
        object["webhook"] = webhook?.saved(now: now, wall: wall)
        return .object(object)
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
