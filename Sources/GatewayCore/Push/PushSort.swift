import WidgetModel

/// What of a client is pushed for by itself: it becomes stale, is confirmed and is asked for apart
/// from the rest.
package enum PushSort: Sendable, Hashable {
    /// Whatever is stale, in one push: the client has no address at APNs.
    case everything
    /// Its timelines and their relevance.
    case timelines
    /// Its recommendation sets.
    case recommendations
    /// One placed control.
    case control(id: String)

    /// The sorts that a client can be pushed for, each with its addresses in the order of the
    /// client's preference.
    static func all(
        of registration: ClientRegistration
    ) -> [(sort: PushSort, addresses: [DeliveryAddress])] {
        let own = registration.controls.compactMap(\.delivery)
        let hasAPNs = (registration.delivery + own).contains { $0.apns != nil }
        guard hasAPNs else {
            let webhooks = registration.delivery.filter(\.isWebhook)
            return webhooks.isEmpty ? [] : [(.everything, webhooks)]
        }
        func shared(_ pushType: String) -> [DeliveryAddress] {
            registration.delivery.filter { $0.isWebhook || $0.apns?.pushType == pushType }
        }
        var sorts: [(sort: PushSort, addresses: [DeliveryAddress])] = [
            (.timelines, shared("widgets")), (.recommendations, shared("background")),
        ]
        for control in registration.controls {
            let addresses = control.delivery.map { [$0] } ?? shared("controls")
            sorts.append((.control(id: control.id), addresses.filter { $0 != .stream }))
        }
        return sorts.filter { !$0.addresses.isEmpty }
    }
}

extension DeliveryAddress {
    /// The address at APNs, if it is one.
    var apns: APNsAddress? {
        if case .apns(let address) = self { address } else { nil }
    }

    /// Whether it is a webhook.
    package var isWebhook: Bool {
        if case .webhook = self { true } else { false }
    }

    /// What kind of push goes there: `webhook`, or a type of APNs' such as `widgets`.
    package var channel: String {
        switch self {
        case .stream: "stream"
        case .webhook: "webhook"
        case .apns(let address): address.pushType
        }
    }

    /// Stands for the address: another token, topic or environment is another address. Equal after
    /// a restart.
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
    /// The client with nothing but what a sort is about.
    func narrowed(to sort: PushSort) -> ClientRecord {
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
