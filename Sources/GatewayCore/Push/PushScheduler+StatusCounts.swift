extension PushScheduler {
    /// The number of push targets by status; each category of each client is counted once.
    package struct StatusCounts: Sendable, Equatable {
        /// Nothing is owed: it was confirmed, or is no longer stale.
        package var confirmed = 0
        /// An address accepted a push that reported everything, but the client has not confirmed
        /// it.
        package var told = 0
        /// A push is in flight.
        package var underWay = 0
        /// The budget, or a stop, withholds a push.
        package var withheld = 0
        /// A push waits: for a stream's grace period, after a failure, or because it is spread.
        package var waiting = 0
        /// The pending content was rejected permanently; the next change creates another push.
        package var refused = 0
        /// No address accepts pushes.
        package var unreachable = 0

        /// The webhooks that answered 410: they are disabled.
        package var goneWebhooks = Affected()
        /// The webhooks that failed for too long: they are disabled.
        package var failedWebhooks = Affected()
        /// The addresses whose last ``failuresMin`` pushes or more failed, and are retried.
        package var failingAddresses = Affected()
        /// The apps whose credential or topic APNs rejects: nothing is pushed for them.
        package var stoppedApps: Set<String> = []

        /// The minimum number of consecutive failures of a failing address.
        package static let failuresMin = 3

        /// Addresses with one problem: their number, and a client with one of them.
        package struct Affected: Sendable, Equatable {
            /// The number of addresses.
            package var count = 0
            /// A client with such an address; `nil` if there is none.
            package var example: ClientKey?

            package init() {}

            fileprivate mutating func count(_ client: ClientKey) {
                count += 1
                if example == nil { example = client }
            }
        }

        package init() {}

        fileprivate mutating func count(
            _ address: DeliveryAttempts.Address, of client: PushClient, key: ClientKey
        ) {
            switch client.addresses[address.id]?.webhook?.disabled {
            case .gone?: goneWebhooks.count(key)
            case .failing?: failedWebhooks.count(key)
            case nil: if address.isUsable { failingAddresses.count(key) }
            }
        }

        fileprivate mutating func count(_ standing: DeliveryAttempts.Status) {
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

    /// Returns the number of push targets by status. Costs time linear in the number of clients.
    package func statusCounts(now: Int64) -> StatusCounts {
        var counts = standings(now: now).reduce(into: StatusCounts()) { $0.count($1.standing) }
        // A webhook may be an address of several categories of its client.
        var counted: Set<ClientAddress> = []
        for lane in lanes.lazy.compactMap({ $0 }) {
            for address in lane.attempts.addresses
            where address.isConfigured
                && (!address.isUsable || address.failures >= StatusCounts.failuresMin)
            {
                guard let client = clients[lane.client], lane.failure == nil,
                    source(of: lane, at: address.id) == nil,
                    counted.insert(ClientAddress(client: lane.client, id: address.id)).inserted
                else { continue }
                counts.count(address, of: client, key: lane.client)
            }
        }
        counts.stoppedApps = Set(stops.map(\.place.app))
        return counts
    }

    private struct ClientAddress: Hashable {
        let client: ClientKey
        let id: UInt64
    }

    /// Returns the status of each category of each client that the configuration allows pushes for.
    package func standings(
        now: Int64
    ) -> some Sequence<(client: ClientKey, sort: PushCategory, standing: DeliveryAttempts.Status)> {
        lanes.lazy.compactMap { $0 }.filter(\.isConfigured).map {
            ($0.client, $0.sort, $0.attempts.standing(now: now))
        }
    }
}

extension DeliveryAttempts {
    /// The delivery status of a client's owed notifications.
    package enum Status: Sendable, Hashable {
        /// Nothing is owed: it was confirmed, or is no longer stale.
        case confirmed
        /// An address accepted a push that reported everything, but the client has not confirmed
        /// it.
        case told
        /// A push is in flight.
        case underWay
        /// The budget withholds a push until this time on the caller's monotonic clock, ms; `.max`
        /// if a stop does until the configuration changes.
        case withheld(until: Int64)
        /// A push waits: for a stream's grace period, after a failure, or because it is spread.
        case waiting
        /// The pending content was rejected permanently; the next change creates another push.
        case refused
        /// No address accepts pushes.
        case unreachable
    }

    /// Returns the current status. To a Live Activity that has ended nothing is owed.
    package func standing(now: Int64) -> Status {
        guard isOwed, !addresses.contains(where: \.hasEnded) else { return .confirmed }
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
