import APNsSimulator
import GatewayCore
import GatewayTestSupport
import Synchronization
import WidgetModel

@testable import GatewayEngine

/// Records every push between the scheduler and APNs, with its reported result.
final class StormLedger: PushSender {
    struct Push: Sendable {
        let token: String
        let environment: APNsEnvironment
        let began: Int64
        let ended: Int64
        let failures: Int
        let urgency: Urgency
        let verdict: APNsReaction.Verdict
        let reason: String?
    }

    private struct State {
        var pushes: [ClientKey: [Push]] = [:]
        /// The tokens with a push in flight.
        var underWay: Set<String> = []
        /// The tokens among them that APNs does not answer.
        var silent: Set<String> = []
        /// The number of events so far.
        var changes = 0
    }

    private let state = Mutex(State())
    private let sender = Mutex<APNsSender?>(nil)
    private let clock: HeldClock

    init(_ clock: HeldClock) { self.clock = clock }

    /// Sends pushes through `sender` from now on.
    func use(_ sender: APNsSender) { self.sender.withLock { $0 = sender } }

    /// The number of events so far, and whether pushes are in flight that will be answered.
    var activity: (changes: Int, isBusy: Bool) {
        state.withLock { ($0.changes, $0.underWay.count > $0.silent.count) }
    }

    /// The pushes for each client, in the order in which they ended.
    var pushes: [ClientKey: [Push]] { state.withLock { $0.pushes } }

    func send(_ order: DuePush, _ finished: @escaping @Sendable (PushReport) -> Void) {
        let began = clock.now
        let token = order.address.token
        state.withLock {
            $0.changes += 1
            $0.underWay.insert(token)
        }
        sender.withLock { $0 }?.send(order) { [self] report in
            if case .apns(let verdict, _) = report.result {
                let push = Push(
                    token: token, environment: order.environment, began: began, ended: clock.now,
                    failures: order.failures,
                    urgency: order.urgency, verdict: verdict, reason: report.reason)
                state.withLock { $0.pushes[order.client, default: []].append(push) }
            }
            state.withLock {
                $0.changes += 1
                $0.underWay.remove(token)
                $0.silent.remove(token)
            }
            finished(report)
        }
    }

    /// Records that APNs has decided about a request.
    func looked(_ decision: SimulatedAPNs.Decision) {
        let token = decision.request.deviceToken.map(String.init) ?? ""
        state.withLock {
            $0.changes += 1
            if case .silence = decision.behaviour, $0.underWay.contains(token) {
                $0.silent.insert(token)
            }
        }
    }

    func drain() async { await sender.withLock { $0 }?.drain() }
}

extension DeliveryAddress {
    /// The APNs device token; empty for other addresses.
    fileprivate var token: String {
        if case .apns(let address) = self { address.token } else { "" }
    }
}
