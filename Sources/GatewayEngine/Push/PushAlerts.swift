import GatewayCore
import Synchronization
import WidgetModel

/// Push problems that need an operator: the latest of each app, in memory. A problem that occurs
/// repeatedly is one event with a count.
package final class PushAlerts: Sendable {
    package struct Event: Sendable {
        /// The number of the last occurrence among all.
        package fileprivate(set) var number: Int64
        /// The time of the last occurrence, in milliseconds since 1970.
        package fileprivate(set) var at: Int64
        /// The number of occurrences.
        package fileprivate(set) var times: UInt64
        package let kind: PushAlert
        /// The client, if the event concerns only one.
        package let client: String?
        let channel: String?
        /// The topics, if they are the problem.
        let topics: TopicMismatch?
        /// The problem and its consequence, in a sentence or two for people.
        package let text: String
    }

    /// The maximum number of events per app; beyond it the least recent one is dropped.
    static let eventsMax = 1_000
    /// The maximum number of those about push services that clients chose.
    static let chosenMax = 100

    private struct State {
        var last: Int64 = 0
        var events: [String: [Event]] = [:]
    }

    private let state = Mutex(State())

    /// Records an occurrence.
    ///
    /// - Parameter host: The host of a push service that a client chose.
    /// - Returns: The event, with its number of occurrences.
    @discardableResult
    func note(
        _ kind: PushAlert, app: String, client: String? = nil, channel: String? = nil,
        reason: String? = nil, host: String? = nil, topics: TopicMismatch? = nil,
        at moment: Int64
    ) -> Event {
        let text = kind.text(
            channel: channel ?? "", reason: reason ?? "", host: host ?? "", topics)
        return state.withLock { state in
            state.last += 1
            var events = state.events[app] ?? []
            var event = Event(
                number: state.last, at: moment, times: 1, kind: kind, client: client,
                channel: channel,
                topics: topics, text: text)
            if let known = events.lastIndex(where: {
                $0.kind == kind && $0.client == client && $0.text == text
            }) {
                event.times += events.remove(at: known).times
            }
            events.append(event)
            let chosen = events.indices.filter { events[$0].kind == .subscriptionRefused }
            if chosen.count > Self.chosenMax { events.remove(at: chosen[0]) }
            if events.count > Self.eventsMax { events.removeFirst() }
            state.events[app] = events
            return event
        }
    }

    /// Returns what is wrong with addresses of a channel that are registered with a topic, or
    /// without one, if APNs rejected such a pairing.
    func pairingProblem(app: String, channel: String, registeredTopic: String?) -> String? {
        state.withLock { state in
            state.events[app]?.last {
                $0.kind == .pairingRefused && $0.channel == channel
                    && $0.topics?.registered == registeredTopic
            }?.text
        }
    }

    /// An app's events, newest first.
    package func events(of app: String) -> [Event] {
        state.withLock { $0.events[app] ?? [] }.reversed()
    }
}

extension WebhookSchedule.Disabled {
    var alert: PushAlert {
        switch self {
        case .gone: .webhookGone
        case .failing: .webhookFailing
        }
    }
}

extension PushAlert {
    /// The problem and its consequence, in a sentence or two for people.
    ///
    /// - Parameter reason: The peer's text, which is truncated.
    fileprivate func text(
        channel: String, reason: String, host: String, _ topics: TopicMismatch?
    ) -> String {
        let reason = String(reason.prefix(64))
        let service = channel == NotificationChannel.fcm.rawValue ? "FCM" : "APNs"
        return switch self {
        case .topicRefused:
            "APNs rejects the topic of \(channel) pushes: \(reason). They are disabled until the "
                + "configuration has another key or topic, or SIGHUP."
        case .credentialRefused:
            "\(service) rejects the key or certificate of \(channel) pushes: \(reason)."
        case .subscriptionRefused:
            "The push service at \(host) rejects pushes to a browser: \(reason). A client chose "
                + "it. Check the app's key and the clock if a known service does so."
        case .pairingRefused:
            "\(service) reports tokens of another app for \(channel) pushes: \(reason). "
                + (topics.map { $0.text + " " } ?? "")
                + "The affected clients get no pushes until then."
        case .requestRefused:
            "\(service) rejects \(channel) pushes as invalid: \(reason). Check the options for "
                + "them, and the version of the gateway."
        case .answerUnknown:
            "\(service) answered \(channel) pushes with a response unknown to this version: "
                + "\(reason)."
        case .webhookGone:
            "The webhook answered 410. It is disabled until the client registers again."
        case .webhookFailing:
            "The webhook failed for five days. It is disabled until the client registers "
                + "again."
        case .contentFailing:
            "The source of content for Live Activities fails repeatedly: \(reason). It is asked "
                + "again after at most five minutes."
        }
    }
}
