import GatewayCore

/// Makes pushes: what stands between the desk's decisions and APNs, or a webhook.
protocol PushSender: Sendable {
    /// Makes a push and says once what came of it, on any thread.
    func send(_ order: PushOrder, _ finished: @escaping @Sendable (PushReport) -> Void)
}

/// What came of a push, for the desk and for people.
struct PushReport: Sendable {
    /// What the desk goes on with.
    let result: PushResult
    /// In a word.
    let outcome: PushOutcome
    /// The status of its answer, if it gave one.
    var status: Int?
    /// Why, in the peer's words where it has any.
    var reason: String?
    /// By what the peer knows the push.
    var reference: String?
    /// What an operator has to know, beyond a metric.
    var alert: APNsReaction.Alert?
}
