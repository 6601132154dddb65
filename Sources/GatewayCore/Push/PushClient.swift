import WidgetModel

/// What is known of a client that can be pushed to, beside what it is owed.
struct PushClient: Sendable {
    /// What it registered, with everything in it that it is pushed for.
    var record: ClientRecord
    /// The slots of its sorts.
    var slots: [Int] = []
    /// Where it can be reached, by what stands for the address.
    var addresses: [UInt64: PushAddress] = [:]
    /// When it was last said where, in milliseconds since 1970.
    var addressedAt: Int64 = 0
    /// How often it may be pushed to; made with its first push.
    var budget: PushBudget?

    init(_ record: ClientRecord) {
        self.record = record
    }
}

/// One place where a client can be reached.
struct PushAddress: Sendable {
    let address: DeliveryAddress
    /// For APNs: where it is pushed to.
    var environment: APNsEnvironmentChoice?
    /// For webhooks: how the endpoint fares.
    var webhook: WebhookSchedule?
    /// Whether it is being taken out of the registration.
    var isDead = false

    init(_ address: DeliveryAddress) {
        self.address = address
        switch address {
        case .stream: break
        case .apns(let apns):
            environment = APNsEnvironmentChoice(
                stated: apns.environment == "sandbox" ? .sandbox : .production)
        case .webhook: webhook = WebhookSchedule()
        }
    }
}

/// One sort of one client: a stream of the desk's shard, and what it is owed.
struct PushLane: Sendable {
    let stream: StreamID
    let client: ClientKey
    let sort: PushSort
    var record: ClientRecord
    var attempts: DeliveryAttempts
    /// Up to where the client acknowledged.
    var acknowledged: UInt64 = 0
    /// When it is looked at next, at the latest.
    var due: Int64?
    /// Whether it waits for others' pushes to end.
    var isQueued = false

    /// Whether any address of it can be pushed to by the configuration.
    var isConfigured: Bool { attempts.addresses.contains(where: \.isConfigured) }
}
