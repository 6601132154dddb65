import GatewayCore
import GatewayTestSupport
import Synchronization

@testable import GatewayEngine

/// Accepts every push, and records it.
final class RecordingSender: PushSender {
    private let clock: HeldClock
    private let endsActivities: Bool
    private let state = Mutex<(orders: [DuePush], times: [Int64])>(([], []))

    /// - Parameters:
    ///   - clock: The clock of the pushes' times.
    ///   - endsActivities: Whether each push ends its activity, unless it starts one.
    init(clock: HeldClock = HeldClock(), endsActivities: Bool = false) {
        (self.clock, self.endsActivities) = (clock, endsActivities)
    }

    var orders: [DuePush] { state.withLock { $0.orders } }
    /// The time of each push.
    var times: [Int64] { state.withLock { $0.times } }

    func send(_ order: DuePush, _ finished: @escaping @Sendable (PushReport) -> Void) {
        state.withLock {
            $0.orders.append(order)
            $0.times.append(clock.now)
        }
        var report = PushReport(result: .apns(.delivered))
        report.ends = endsActivities && order.activity?.start == nil
        finished(report)
    }
}

extension StreamFixture {
    func startPushes(
        _ sender: any PushSender, mayPush: @escaping @Sendable () -> Bool = { true }
    ) throws -> PushLoop {
        guard let push = engine.push else { throw TestFailure("the gateway does not push") }
        push.start(
            PushLoop.Dependencies(
                store: store, drop: { _, _ in }, sender: { _, _ in sender },
                acceptTime: { _ in nil }, mayPush: mayPush))
        return push
    }
}
