import GatewayCore
import Synchronization
import WidgetModel

@testable import GatewayEngine

/// APNs and all webhooks: answers as scripted, at once, and records what was pushed.
final class OracleSender: PushSender {
    enum Answer: Sendable { case accepts, fails, dies }

    struct Push: Sendable {
        let client: String
        let address: OracleAddress
        let notice: OracleNotice
        /// The sequence up to which it tells everything.
        let position: UInt64
        let answer: Answer
    }

    private struct State {
        var pushes: [Push] = []
        var answers: [OracleAddress: [Answer]] = [:]
    }

    private let state = Mutex(State())

    /// Answers the next pushes to an address like this; all others are accepted.
    func script(_ answers: [Answer], at address: OracleAddress) {
        state.withLock { $0.answers[address, default: []] += answers }
    }

    /// Returns the pushes since the last call, in order.
    func take() -> [Push] {
        state.withLock { state in
            defer { state.pushes = [] }
            return state.pushes
        }
    }

    func send(_ order: DuePush, _ finished: @escaping @Sendable (PushReport) -> Void) {
        guard let address = OracleAddress(order.address) else {
            return finished(PushReport(result: .notSent))
        }
        let answer = state.withLock { state -> Answer in
            var answers = state.answers[address] ?? []
            let answer = answers.isEmpty ? Answer.accepts : answers.removeFirst()
            state.answers[address] = answers
            state.pushes.append(
                Push(
                    client: order.client.client, address: address,
                    notice: OracleNotice(order.content), position: order.position, answer: answer))
            return answer
        }
        finished(PushReport(result: address.isWebhook ? answer.ofWebhook : answer.ofAPNs))
    }
}

extension OracleSender.Answer {
    fileprivate var ofAPNs: PushResult {
        switch self {
        case .accepts: .service(.delivered)
        case .fails: .service(.retry(.device))
        case .dies: .service(.dropAddress)
        }
    }

    fileprivate var ofWebhook: PushResult {
        .webhook(WebhookResponse.status(self == .accepts ? 204 : 500))
    }
}

extension OracleAddress {
    /// `nil` for a stream.
    init?(_ address: DeliveryAddress) {
        switch address {
        case .stream, .webPush, .fcm: return nil
        case .webhook(let url):
            self = .webhook(String(url.dropFirst(Self.scheme.count).prefix { $0 != "." }))
        case .apns(let apns):
            switch apns.pushType {
            case "widgets": self = .widgets(apns.token)
            case "background": self = .background(apns.token)
            case "liveactivity": self = .activity(apns.token)
            default: self = .controls(apns.token)
            }
        }
    }

    private static let scheme = "https://"

    /// The address in a registration.
    var json: JSONValue {
        func apns(_ type: String, _ token: String) -> JSONValue {
            [
                "type": "apns", "pushType": .string(type), "token": .string(token),
                "environment": "production",
            ]
        }
        return switch self {
        case .widgets(let token): apns("widgets", token)
        case .background(let token): apns("background", token)
        case .controls(let token): apns("controls", token)
        case .activity(let token): apns("liveactivity", token)
        case .webhook(let host):
            ["type": "webhook", "url": .string("\(Self.scheme)\(host).example/hook")]
        }
    }
}

extension OracleNotice {
    init(_ claims: ReloadNotification) {
        var names = claims.reload.map {
            Name(sort: .timeline, kind: $0.kind, value: $0.parameters.first?.value)
        }
        names += claims.recommendations.map { Name(sort: .set, kind: $0, value: nil) }
        names += claims.relevance.map { Name(sort: .relevance, kind: $0, value: nil) }
        names += claims.controls.map { Name(sort: .control, kind: $0, value: nil) }
        names += claims.activities.map {
            Name(sort: .activity, kind: $0.type, value: $0.id ?? $0.attributes.first?.value)
        }
        self.init(all: claims.all, names: names, sequence: claims.sequence)
    }

    init(_ stale: StaleSet) {
        let names = stale.names.map { name in
            let sort: OracleItem.Sort =
                switch name.target {
                case .timeline: .timeline
                case .recommendations: .set
                case .relevance: .relevance
                case .control: .control
                case .activity: .activity
                }
            return Name(sort: sort, kind: name.kind, value: name.parameters.first?.value)
        }
        self.init(all: stale.all, names: names, sequence: stale.sequence)
    }
}
