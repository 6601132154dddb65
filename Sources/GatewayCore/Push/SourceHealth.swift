import WidgetModel

/// The failures of a source of content since its last answer. While it is down, it is asked for a
/// few activities at a time, and all others wait.
struct SourceHealth: Sendable {
    /// Why the last question got no content.
    private(set) var failure = ContentFailure.unreachable
    private(set) var failures = 0
    /// Whether it gave no answer, requested a wait, or has no content for two clients. What it does
    /// not know of one client it may know of others.
    private(set) var isDown = false
    /// The client of the first failed question.
    private var client: ClientKey?
    /// The time before which it is not asked again.
    private(set) var until = Int64.min
    /// The number of the last push that had begun when it failed.
    private var lastPush: UInt64 = 0
    /// The longest wait that an answer may request, seconds.
    private static let retryAfterMax: Int64 = 300

    /// Records that a question got no content.
    ///
    /// - Parameters:
    ///   - number: The number of the push that it was asked for.
    ///   - client: The client of that push.
    ///   - lastPush: The number of the last push that has begun.
    /// - Returns: Whether it counts: a question asked before the last failure is part of that one.
    mutating func failed(
        _ failure: ContentFailure, push number: UInt64, of client: ClientKey, lastPush: UInt64,
        retryAfter: Int64?, now: Int64, random: UInt64
    ) -> Bool {
        self.failure = failure
        let first = self.client ?? client
        self.client = first
        if !isDown, retryAfter != nil || !failure.isAnswer || client != first {
            // However often it failed for one of them.
            (isDown, failures) = (true, min(failures, 1))
        }
        guard number > self.lastPush else { return false }
        self.lastPush = lastPush
        let wait = APNsWait.connection.milliseconds(
            failures: isDown ? failures : 0, urgency: .normal, random: random)
        failures = min(failures + 1, 1_000)
        let requested = min(max(retryAfter ?? 0, 0), Self.retryAfterMax) * 1_000
        until = now.later(by: max(wait, requested))
        return true
    }
}
