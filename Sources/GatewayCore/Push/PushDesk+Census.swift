extension PushDesk {
    /// How all that can be pushed for stands: each sort of each client is counted once.
    package struct Census: Sendable, Equatable {
        /// Nothing is owed: it was confirmed, or is stale no more.
        package var confirmed = 0
        /// An address took a push that said everything; the client has not confirmed it.
        package var told = 0
        /// A push is under way.
        package var underWay = 0
        /// The budget, or a stop, withholds a push.
        package var withheld = 0
        /// A push waits: for a stream's grace, after a failure, or because it is spread.
        package var waiting = 0
        /// What there is to say was refused for good; the next change makes another push.
        package var refused = 0
        /// No address may be pushed to.
        package var unreachable = 0

        /// Nothing was counted.
        package init() {}

        fileprivate mutating func count(_ standing: DeliveryAttempts.Standing) {
            switch standing {
            case .confirmed: confirmed += 1
            case .told: told += 1
            case .underWay: underWay += 1
            case .withheld: withheld += 1
            case .waiting: waiting += 1
            case .refused: refused += 1
            case .unreachable: unreachable += 1
            }
        }
    }

    /// How everything stands. Costs a look at each client.
    package func census(now: Int64) -> Census {
        standings(now: now).reduce(into: Census()) { $0.count($1.standing) }
    }

    /// How each sort of each client stands that is pushed for by the configuration.
    package func standings(
        now: Int64
    ) -> some Sequence<(client: ClientKey, sort: PushSort, standing: DeliveryAttempts.Standing)> {
        lanes.lazy.compactMap { $0 }.filter(\.isConfigured).map {
            ($0.client, $0.sort, $0.attempts.standing(now: now))
        }
    }
}

extension DeliveryAttempts {
    /// How a client stands with what it is owed.
    package enum Standing: Sendable, Hashable {
        /// Nothing is owed: it was confirmed, or is stale no more.
        case confirmed
        /// An address took a push that said everything; the client has not confirmed it.
        case told
        /// A push is under way.
        case underWay
        /// The budget withholds a push until that moment, in the caller's monotonic milliseconds;
        /// a stop does until the configuration changes, which is `.max`.
        case withheld(until: Int64)
        /// A push waits: for a stream's grace, after a failure, or because it is spread.
        case waiting
        /// What there is to say was refused for good; the next change makes another push.
        case refused
        /// No address may be pushed to.
        case unreachable
    }

    /// How the client stands.
    package func standing(now: Int64) -> Standing {
        guard isOwed else { return .confirmed }
        if addresses.contains(where: { $0.underWay != nil }) { return .underWay }
        if addresses.contains(where: { $0.delivered >= latest }) { return .told }
        let usable = addresses.filter(\.isOpen)
        guard !usable.isEmpty else { return .unreachable }
        let open = usable.filter { $0.covered < latest }
        guard !open.isEmpty else { return .refused }
        let withheld = open.map(\.withheldUntil).filter { $0 > now }
        return withheld.min().map { .withheld(until: $0) } ?? .waiting
    }
}
