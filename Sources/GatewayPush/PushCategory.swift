import GatewayCore
import WidgetModel

/// A category of a client's content that is pushed separately: it becomes stale, is confirmed and
/// is checked independently of the others.
package enum PushCategory: Sendable, Hashable {
    /// All content in one push: the client has no APNs address.
    case everything
    /// The timelines and their relevance.
    case timelines
    /// The recommendation sets.
    case recommendations
    /// A single placed control.
    case control(id: String)

    /// Returns the categories of a client with pushes, each with its addresses in the client's
    /// order of preference.
    static func all(
        of registration: ClientRegistration
    ) -> [(sort: PushCategory, addresses: [DeliveryAddress])] {
        let own = registration.controls.compactMap(\.delivery)
        let hasAPNs = (registration.delivery + own).contains { $0.apns != nil }
        guard hasAPNs else {
            let webhooks = registration.delivery.filter(\.isWebhook)
            return webhooks.isEmpty ? [] : [(.everything, webhooks)]
        }
        func shared(_ type: APNsPushType) -> [DeliveryAddress] {
            registration.delivery.filter { $0.isWebhook || $0.apns?.type == type }
        }
        var sorts: [(sort: PushCategory, addresses: [DeliveryAddress])] = [
            (.timelines, shared(.widgets)), (.recommendations, shared(.background)),
        ]
        for control in registration.controls {
            let addresses = control.delivery.map { [$0] } ?? shared(.controls)
            sorts.append((.control(id: control.id), addresses.filter { $0 != .stream }))
        }
        return sorts.filter { !$0.addresses.isEmpty }
    }
}

extension DeliveryAddress {
    /// The APNs address; `nil` for any other address.
    package var apns: APNsAddress? {
        if case .apns(let address) = self { address } else { nil }
    }

    /// Whether the address is a webhook.
    package var isWebhook: Bool {
        if case .webhook = self { true } else { false }
    }

    /// Returns the hash that identifies the address: another token, topic or environment is another
    /// address. Stable across restarts.
    func id(_ hash: SipHash) -> UInt64 {
        let parts: [String] =
            switch self {
            case .stream: []
            case .webhook(let url): ["webhook", url]
            case .apns(let apns):
                ["apns", apns.pushType, apns.token, apns.environment, apns.topic ?? ""]
            }
        return hash(parts.joined(separator: "\0"))
    }
}

extension ClientRecord {
    /// Returns the client with only the content of a category.
    func narrowed(to sort: PushCategory) -> ClientRecord {
        var registration = registration
        switch sort {
        case .everything: return self
        case .timelines:
            registration.recommendations = []
            registration.controls = []
        case .recommendations:
            registration.widgets = []
            registration.controls = []
        case .control(let id):
            registration.widgets = []
            registration.recommendations = []
            registration.controls.removeAll { $0.id != id }
        }
        return ClientRecord(
            client: client, registration: registration, attributes: origins,
            confirmed: confirmed, since: since, addressedAt: addressedAt)
    }
}
