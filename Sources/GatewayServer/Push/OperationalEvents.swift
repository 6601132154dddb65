import GatewayCore
import Synchronization
import WidgetModel

/// What an operator has to know of pushes, beyond how many there are: the latest of each app, in
/// memory. What happens again and again is one event that counts.
final class OperationalEvents: Sendable {
    /// What happened.
    enum Kind: String, Sendable, CaseIterable {
        /// APNs refuses a topic.
        case topicRefused = "topic-refused"
        /// APNs refuses a key or certificate, or what it may be used for.
        case credentialRefused = "credential-refused"
        /// APNs says that tokens do not belong to the topic.
        case pairingRefused = "pairing-refused"
        /// APNs finds a request wrong.
        case requestRefused = "request-refused"
        /// APNs answers what this version does not know.
        case answerUnknown = "answer-unknown"
        /// A webhook answered 410.
        case webhookGone = "webhook-gone"
        /// A webhook failed for too long.
        case webhookFailing = "webhook-failing"
    }

    /// One event.
    struct Event: Sendable {
        /// Where the last time comes among all.
        fileprivate(set) var number: Int64
        /// When it last happened, in milliseconds since 1970.
        fileprivate(set) var at: Int64
        /// How often it happened.
        fileprivate(set) var times: UInt64
        let kind: Kind
        /// The one client it is about, if it is about one.
        let client: String?
        /// What happened and what follows, in a sentence or two for people.
        let text: String
    }

    /// Most events of an app; beyond it the one that was longest ago is forgotten.
    static let eventsMax = 1_000

    private struct State {
        var last: Int64 = 0
        var events: [String: [Event]] = [:]
    }

    private let state = Mutex(State())

    /// Notes what happened.
    ///
    /// - Returns: the event, with how often it happened.
    @discardableResult
    func note(
        _ kind: Kind, app: String, client: String? = nil, channel: String? = nil,
        reason: String? = nil, at moment: Int64
    ) -> Event {
        let text = kind.text(channel: channel ?? "", reason: reason ?? "")
        return state.withLock { state in
            state.last += 1
            var events = state.events[app] ?? []
            var event = Event(
                number: state.last, at: moment, times: 1, kind: kind, client: client, text: text)
            if let known = events.lastIndex(where: {
                $0.kind == kind && $0.client == client && $0.text == text
            }) {
                event.times += events.remove(at: known).times
            }
            events.append(event)
            if events.count > Self.eventsMax { events.removeFirst() }
            state.events[app] = events
            return event
        }
    }

    /// An app's events, the newest first.
    func events(of app: String) -> [Event] {
        state.withLock { $0.events[app] ?? [] }.reversed()
    }
}

extension OperationalEvents.Kind {
    /// What of a push's refusal an operator has to know.
    init(_ alert: APNsReaction.Alert) {
        self =
            switch alert {
            case .badRequest: .requestRefused
            case .topic: .topicRefused
            case .credential: .credentialRefused
            case .pairing: .pairingRefused
            case .unknown: .answerUnknown
            }
    }

    /// Why a webhook is not asked any more.
    init(_ reason: WebhookSchedule.Disabled) {
        self =
            switch reason {
            case .gone: .webhookGone
            case .failing: .webhookFailing
            }
    }

    /// - Parameter reason: A peer's word: it is cut short.
    fileprivate func text(channel: String, reason: String) -> String {
        let reason = String(reason.prefix(64))
        return switch self {
        case .topicRefused:
            "APNs refuses the topic of \(channel) pushes: \(reason). None is made there until "
                + "the gateway starts again with another configuration."
        case .credentialRefused:
            "APNs refuses the key or certificate of \(channel) pushes: \(reason)."
        case .pairingRefused:
            "APNs says that tokens of \(channel) pushes are of another topic: \(reason). Clients "
                + "concerned are left alone until they register another token."
        case .requestRefused:
            "APNs finds \(channel) pushes wrong: \(reason). Look at the options of their form, or "
                + "at the version of the gateway."
        case .answerUnknown:
            "APNs answered \(channel) pushes in a way that this version does not know: \(reason)."
        case .webhookGone:
            "The webhook answered 410. It is not asked until the client is registered again."
        case .webhookFailing:
            "The webhook failed for five days. It is not asked until the client is registered "
                + "again."
        }
    }
}
