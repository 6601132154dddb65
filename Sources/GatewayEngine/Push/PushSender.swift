import GatewayCore
import GatewayPush

/// Sends the pushes that the desk decides, to APNs or to a webhook.
package protocol PushSender: Sendable {
    /// Makes a push and says once what came of it, on any thread.
    func send(_ order: PushOrder, _ finished: @escaping @Sendable (PushReport) -> Void)
}

/// One attempt to push, for the desk and for people.
package struct PushReport: Sendable {
    /// The result that the desk acts on.
    var result: PushResult
    /// The status of its answer, if it gave one.
    var status: Int?
    /// Why, in the peer's words where it has any.
    var reason: String?
    /// The id by which the peer knows the push.
    var reference: String?
    /// The problem that needs an operator, if there is one.
    var alert: PushAlert?

    /// The outcome in a word.
    var outcome: PushOutcome { PushOutcome(result) }
}
