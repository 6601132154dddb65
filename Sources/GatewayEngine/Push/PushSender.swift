import GatewayCore

/// Sends the pushes that the scheduler decides, to APNs or to a webhook.
package protocol PushSender: Sendable {
    /// Sends a push and reports its result exactly once, on any thread.
    func send(_ order: DuePush, _ finished: @escaping @Sendable (PushReport) -> Void)
}

/// One push attempt, for the scheduler and for people.
package struct PushReport: Sendable {
    /// The result that the scheduler acts on.
    var result: PushResult
    /// The status of the response, if there was one.
    var status: Int?
    /// The reason, in the peer's words if it states any.
    var reason: String?
    /// The id that identifies the push at the peer.
    var reference: String?
    /// The problem that needs an operator, if there is one.
    var alert: PushAlert?
    /// The `apns-topic` of the push, if it had one.
    var topic: String?
    /// Whether its content ended a Live Activity.
    var ends = false

    var outcome: PushOutcome { PushOutcome(result) }
}
