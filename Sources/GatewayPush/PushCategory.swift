import GatewayCore
import WidgetModel

/// A category of a client's content: it becomes stale, is confirmed and is checked independently of
/// the others. A push reports all categories that have its address and something to report.
package enum PushCategory: Sendable, Hashable {
    /// The timelines and their relevance.
    case timelines
    /// The recommendation sets.
    case recommendations
    /// A single placed control.
    case control(id: String)

    /// Returns the categories of a client, each with its addresses in the client's order of
    /// preference; some have none.
    static func all(
        of registration: ClientRegistration
    ) -> [(sort: PushCategory, addresses: [DeliveryAddress])] {
        func shared(_ type: APNsPushType) -> [DeliveryAddress] {
            registration.delivery.filter { $0.isWebhook || $0.apns?.type == type }
        }
        // Most clients have no sets, of which a webhook could be told.
        let sets = shared(.background).filter {
            !$0.isWebhook || !registration.recommendations.isEmpty
        }
        return [(.timelines, shared(.widgets)), (.recommendations, sets)]
            + registration.controls.map { control in
                let addresses = control.delivery.map { [$0] } ?? shared(.controls)
                return (.control(id: control.id), addresses.filter { $0 != .stream })
            }
    }
}

extension ClientRegistration {
    /// Whether the client has content of a category.
    func has(_ sort: PushCategory) -> Bool {
        switch sort {
        case .timelines: !widgets.isEmpty
        case .recommendations: !recommendations.isEmpty
        case .control: true
        }
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
    /// Returns the client with only the content of some categories.
    func narrowed(to sorts: [PushCategory]) -> ClientRecord {
        var registration = registration
        if !sorts.contains(.timelines) { registration.widgets = [] }
        if !sorts.contains(.recommendations) { registration.recommendations = [] }
        registration.controls.removeAll { !sorts.contains(.control(id: $0.id)) }
        return ClientRecord(
            client: client, registration: registration, attributes: origins,
            confirmed: confirmed, since: since, addressedAt: addressedAt)
    }
}
