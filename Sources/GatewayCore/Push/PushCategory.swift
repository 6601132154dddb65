import WidgetModel

/// A category of a client's content: it becomes stale, is confirmed and is checked independently of
/// the others. A push reports all categories that have its address and something to report.
package enum PushCategory: Sendable, Hashable {
    /// The timelines and their relevance.
    case timelines
    case recommendations
    /// A single placed control.
    case control(id: String)
    /// A single Live Activity.
    case activity(id: String)
    /// The start of Live Activities of a type.
    case start(type: String)

    /// Whether it starts Live Activities. Only pushes do, and no contact of the client confirms it.
    package var isStart: Bool {
        if case .start = self { true } else { false }
    }

    /// The type of the Live Activities that it starts; `nil` if it starts none.
    var startedType: String? {
        if case .start(let type) = self { type } else { nil }
    }

    /// Returns the categories of a client, each with its addresses in the client's order of
    /// preference; some have none.
    static func all(
        of registration: ClientRegistration
    ) -> [(sort: PushCategory, addresses: [DeliveryAddress])] {
        func shared(_ type: APNsPushType) -> [DeliveryAddress] {
            registration.delivery.filter { $0.namesItems || $0.apns?.type == type }
        }
        // Most clients have no sets that a webhook could report.
        let sets = shared(.background).filter {
            !$0.namesItems || !registration.recommendations.isEmpty
        }
        var all: [(sort: PushCategory, addresses: [DeliveryAddress])] = [
            (.timelines, shared(.widgets)), (.recommendations, sets),
        ]
        for control in registration.controls {
            let addresses = control.delivery.map { [$0] } ?? shared(.controls)
            all.append((.control(id: control.id), addresses.filter { $0 != .stream }))
        }
        for activity in registration.activities {
            let addresses =
                activity.delivery.map { [$0] } ?? registration.delivery.filter(\.namesItems)
            all.append((.activity(id: activity.id), addresses))
        }
        for start in registration.activityStarts {
            all.append((.start(type: start.type), [start.delivery]))
        }
        return all
    }
}

extension PushCategory {
    /// The category as stored text, with the id of a control or activity, or the type of a start.
    var text: String {
        switch self {
        case .timelines: "timelines"
        case .recommendations: "recommendations"
        case .control(let id): "control " + id
        case .activity(let id): "activity " + id
        case .start(let type): "start " + type
        }
    }

    /// Reads ``text``; unknown text becomes a category that no push has, and is ignored. Older
    /// versions had one category for all content of a client without APNs.
    init(text: String) {
        // A mark at the beginning of the name makes one character with the space.
        let word = text.unicodeScalars.prefix { $0 != " " }
        let name = String(text.unicodeScalars.dropFirst(word.count + 1))
        switch String(word) {
        case "everything", "timelines": self = .timelines
        case "recommendations": self = .recommendations
        case "activity": self = .activity(id: name)
        case "start": self = .start(type: name)
        default: self = .control(id: name)
        }
    }
}

extension ClientRegistration {
    /// Whether the client has content of a category.
    func has(_ sort: PushCategory) -> Bool {
        switch sort {
        case .timelines: !widgets.isEmpty
        case .recommendations: !recommendations.isEmpty
        case .control, .activity, .start: true
        }
    }

    /// Whether only its own pushes confirm a category: starts, and a Live Activity with an address
    /// of its own. No stream, poll or cursor of the client says what such an activity shows.
    func isPushed(_ sort: PushCategory) -> Bool {
        switch sort {
        case .timelines, .recommendations, .control: false
        case .activity(let id): activities.contains { $0.id == id && $0.delivery != nil }
        case .start: true
        }
    }
}

extension NotificationChannel {
    /// The push type whose budget its pushes count against; `nil` for no budget.
    var budgeted: APNsPushType? {
        switch self {
        case .webpush, .fcm: .widgets
        case .stream, .poll, .webhook: nil
        case .widgets, .controls, .background, .liveactivity: APNsPushType(rawValue: rawValue)
        }
    }
}

extension DeliveryAddress {
    /// The APNs address; `nil` for any other address.
    package var apns: APNsAddress? {
        if case .apns(let address) = self { address } else { nil }
    }

    package var isWebhook: Bool {
        if case .webhook = self { true } else { false }
    }

    /// Whether a push to it names the stale items, of whatever category.
    package var namesItems: Bool {
        switch self {
        case .webhook, .webPush, .fcm: true
        case .stream, .apns: false
        }
    }

    /// The push type whose budget its pushes count against; `nil` for no budget.
    package var budgeted: APNsPushType? { channel.budgeted }

    /// Returns the hash that identifies the address: another token or channel, topic or environment
    /// is another address. Stable across restarts.
    func id(_ hash: SipHash) -> UInt64 {
        let parts: [String] =
            switch self {
            case .stream: []
            case .webhook(let url): ["webhook", url]
            case .fcm(let token): ["fcm", token]
            case .webPush(let push): ["webpush", push.endpoint, push.p256dh, push.auth]
            case .apns(let apns):
                ["apns", apns.pushType, apns.token, apns.environment, apns.topic ?? ""]
                    + (apns.channel.map { [$0] } ?? [])
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
        registration.activities.removeAll { !sorts.contains(.activity(id: $0.id)) }
        return ClientRecord(
            client: client, registration: registration, attributes: origins,
            confirmed: confirmed, since: since, addressedAt: addressedAt)
    }
}
