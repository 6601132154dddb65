import WidgetModel

/// The state of a client with pushes, apart from its owed notifications.
struct PushClient: Sendable {
    /// The registration, including everything that pushes are sent for.
    var record: ClientRecord
    /// The slots of its categories.
    var slots: [Int] = []
    /// The addresses, by their hash.
    var addresses: [UInt64: PushAddress] = [:]
    /// The time at which the addresses were last stated, ms since 1970.
    var addressedAt: Int64 = 0
    /// The push budget; created with its first push.
    var budget: PushBudget?
    /// Whether the id of its streams is known.
    var sent = SentState.unknown

    init(_ record: ClientRecord) {
        self.record = record
    }
}

/// The knowledge of the id of a client's streams, up to which they sent everything.
enum SentState: Sendable {
    /// It has to be read before a push.
    case unknown
    /// It is being read.
    case requested
    /// It was read a moment ago.
    case read
}

/// An address for pushes, with its state.
struct PushAddress: Sendable {
    let address: DeliveryAddress
    /// The APNs environment; `nil` for any other address.
    var environment: APNsEnvironmentChoice?
    /// The schedule of a webhook endpoint; `nil` for any other address.
    var webhook: WebhookSchedule?
    /// The host and port whose pushes share places in flight; `nil` for APNs.
    var host: String?
    /// Whether the address is being removed from the registration.
    var isDead = false

    init(_ address: DeliveryAddress) {
        self.address = address
        switch address {
        case .stream: break
        case .apns(let apns):
            let stated: APNsEnvironment = apns.environment == "sandbox" ? .sandbox : .production
            environment = APNsEnvironmentChoice(stated: stated)
            // A channel exists in its own environment only.
            if apns.channel != nil { environment?.worked(in: stated) }
        case .webhook(let url):
            webhook = WebhookSchedule()
            host = Self.host(of: url)
        case .webPush(let push): host = Self.host(of: push.endpoint)
        case .fcm: host = "fcm.googleapis.com:443"
        }
    }

    private static func host(of url: String) -> String {
        (try? WebhookEndpoint(url)).map { "\($0.host):\($0.port)" } ?? url
    }

    /// The service that pushes to it; `nil` for a webhook.
    var service: PushService? {
        switch address {
        case .stream, .webhook: nil
        case .apns: environment.map { .apns($0.current) }
        case .webPush: .webPush
        case .fcm: .fcm
        }
    }
}

/// The push state of one category of a client: a stream of the scheduler's shard, and the owed
/// notifications.
struct PushTarget: Sendable {
    let stream: StreamID
    let client: ClientKey
    let sort: PushCategory
    var record: ClientRecord
    var attempts: DeliveryAttempts
    /// Why there was no content for the last push; `nil` if there was.
    var failure: ContentFailure?
    /// The latest time of the next evaluation.
    var due: Int64?

    /// Whether only its own pushes confirm it.
    var isPushed: Bool { record.registration.isPushed(sort) }

    /// Records that nothing up to a position is left to push.
    mutating func settled(upTo position: UInt64) {
        if isPushed { attempts.confirm(position) }
    }

    /// The Live Activity of the category; `nil` for any other category.
    var activity: RegisteredActivity? {
        if case .activity = sort { record.registration.activities.first } else { nil }
    }

    /// The type of the Live Activities that it pushes to or starts; `nil` for any other category.
    var activityType: String? { sort.startedType ?? activity?.type }

    /// Whether the configuration allows pushes to any of its addresses.
    var isConfigured: Bool { attempts.addresses.contains(where: \.isConfigured) }
}
