import GatewayCore

extension PushScheduler {
    /// The persisted form of a client. Pushes in flight are not included: they are sent again.
    package struct SavedClient: Sendable, Hashable {
        /// An address with its state.
        package struct Address: Sendable, Hashable {
            /// The hash that identifies the address.
            package var id: UInt64
            /// The APNs environment; `nil` for webhooks.
            package var environment: APNsEnvironmentChoice?
            /// The schedule of a webhook endpoint; `nil` for APNs.
            package var webhook: WebhookSchedule.Saved?

            package init(
                id: UInt64, environment: APNsEnvironmentChoice?, webhook: WebhookSchedule.Saved?
            ) {
                self.id = id
                self.environment = environment
                self.webhook = webhook
            }
        }

        /// The owed notifications by category.
        package var lanes: [PushCategory: DeliveryAttempts.Saved]
        /// The addresses with their states.
        package var addresses: [Address]
        /// The remaining budget; `nil` before the first push.
        package var budget: PushBudget.Saved?

        package init(
            lanes: [PushCategory: DeliveryAttempts.Saved], addresses: [Address],
            budget: PushBudget.Saved?
        ) {
            self.lanes = lanes
            self.addresses = addresses
            self.budget = budget
        }
    }

    /// The position up to which clients are owed only what their persisted state says, once all
    /// that changed is persisted.
    package var clear: UInt64 { shard.settled }

    /// Returns clients that changed since they were last persisted, at most `limit`; a `nil` value
    /// for one that gets no more pushes. They then count as persisted.
    package mutating func takeChanged(
        limit: Int, now: Int64, wall: Int64
    ) -> [(key: ClientKey, saved: SavedClient?)] {
        var taken: [(key: ClientKey, saved: SavedClient?)] = []
        while taken.count < limit, let key = changed.popFirst() {
            taken.append((key, saved(key, now: now, wall: wall)))
        }
        return taken
    }

    /// Marks clients as changed again, because persisting them failed.
    package mutating func putBack(_ keys: some Sequence<ClientKey>) {
        changed.formUnion(keys)
    }

    private func saved(_ key: ClientKey, now: Int64, wall: Int64) -> SavedClient? {
        guard let client = clients[key] else { return nil }
        let states = client.slots.compactMap { lanes[$0] }.map {
            ($0.sort, $0.attempts.saved(now: now, wall: wall))
        }
        return SavedClient(
            lanes: Dictionary(states) { $1 },
            addresses: client.addresses.sorted { $0.key < $1.key }.map { id, address in
                .init(
                    id: id, environment: address.environment,
                    webhook: address.webhook?.saved(now: now, wall: wall))
            },
            budget: client.budget?.saved(now: now, wall: wall))
    }
}

extension PushAddress {
    /// Restores the persisted state of the address.
    mutating func take(_ saved: PushScheduler.SavedClient.Address, now: Int64, wall: Int64) {
        if environment != nil, let known = saved.environment { environment = known }
        if webhook != nil, let known = saved.webhook {
            webhook = WebhookSchedule(known, now: now, wall: wall)
        }
    }
}
