import GatewayCore
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
    /// The APNs environment; `nil` for webhooks.
    var environment: APNsEnvironmentChoice?
    /// The schedule of a webhook endpoint; `nil` for APNs.
    var webhook: WebhookSchedule?
    /// The host and port of a webhook; `nil` for APNs.
    var host: String?
    /// Whether the address is being removed from the registration.
    var isDead = false

    init(_ address: DeliveryAddress) {
        self.address = address
        switch address {
        case .stream: break
        case .apns(let apns):
            environment = APNsEnvironmentChoice(
                stated: apns.environment == "sandbox" ? .sandbox : .production)
        case .webhook(let url):
            webhook = WebhookSchedule()
            host = (try? WebhookEndpoint(url)).map { "\($0.host):\($0.port)" } ?? url
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
    /// The latest time of the next evaluation.
    var due: Int64?

    /// Whether the configuration allows pushes to any of its addresses.
    var isConfigured: Bool { attempts.addresses.contains(where: \.isConfigured) }
}
