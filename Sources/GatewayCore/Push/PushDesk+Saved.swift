import WidgetModel

extension PushDesk {
    /// A client as it is persisted. Pushes that are under way are not part of it: they are made
    /// again.
    package struct SavedClient: Sendable, Hashable {
        /// A sort, and what it is owed.
        package struct Lane: Sendable, Hashable {
            /// Which.
            package var sort: PushSort
            /// What it is owed.
            package var attempts: DeliveryAttempts.Saved

            /// What was persisted.
            package init(sort: PushSort, attempts: DeliveryAttempts.Saved) {
                self.sort = sort
                self.attempts = attempts
            }
        }

        /// An address, and how it fares.
        package struct Address: Sendable, Hashable {
            /// Stands for the address.
            package var id: UInt64
            /// For APNs: where it is pushed to.
            package var environment: APNsEnvironmentChoice?
            /// For webhooks: how the endpoint fares.
            package var webhook: WebhookSchedule.Saved?

            /// What was persisted.
            package init(
                id: UInt64, environment: APNsEnvironmentChoice?, webhook: WebhookSchedule.Saved?
            ) {
                self.id = id
                self.environment = environment
                self.webhook = webhook
            }
        }

        /// What is owed.
        package var lanes: [Lane]
        /// The addresses.
        package var addresses: [Address]
        /// What is left of the budget; `nil` before the first push.
        package var budget: PushBudget.Saved?

        /// What was persisted.
        package init(lanes: [Lane], addresses: [Address], budget: PushBudget.Saved?) {
            self.lanes = lanes
            self.addresses = addresses
            self.budget = budget
        }
    }

    /// Clients that changed since they were last persisted, at most `limit` of them; `nil` for one
    /// that is not pushed to any more. They count as persisted from here on.
    package mutating func takeChanged(
        limit: Int, now: Int64, wall: Int64
    ) -> [(key: ClientKey, saved: SavedClient?)] {
        var taken: [(key: ClientKey, saved: SavedClient?)] = []
        while taken.count < limit, let key = changed.popFirst() {
            taken.append((key, saved(key, now: now, wall: wall)))
        }
        return taken
    }

    /// They were not persisted after all.
    package mutating func putBack(_ keys: some Sequence<ClientKey>) {
        changed.formUnion(keys)
    }

    private func saved(_ key: ClientKey, now: Int64, wall: Int64) -> SavedClient? {
        guard let client = clients[key] else { return nil }
        return SavedClient(
            lanes: client.slots.compactMap { slot in
                lanes[slot].map {
                    .init(sort: $0.sort, attempts: $0.attempts.saved(now: now, wall: wall))
                }
            },
            addresses: client.addresses.sorted { $0.key < $1.key }.map { id, address in
                .init(
                    id: id, environment: address.environment,
                    webhook: address.webhook?.saved(now: now, wall: wall))
            },
            budget: client.budget?.saved(now: now, wall: wall))
    }
}

extension PushAddress {
    /// Takes over what was persisted of the address.
    mutating func take(_ saved: PushDesk.SavedClient.Address, now: Int64, wall: Int64) {
        if environment != nil, let known = saved.environment { environment = known }
        if webhook != nil, let known = saved.webhook {
            webhook = WebhookSchedule(known, now: now, wall: wall)
        }
    }
}
