import WidgetModel

package struct WebhookResponse: Sendable, Hashable {
    package let status: Int
    /// The wait that `Retry-After` requested, in seconds.
    package let retryAfter: Int64?
    /// Whether it came over HTTP/2, so that requests to the endpoint share connections.
    package var isMultiplexed = false

    package static func status(_ status: Int, retryAfter: Int64? = nil) -> Self {
        Self(status: status, retryAfter: retryAfter)
    }

    /// Whether the endpoint accepted the message.
    package var isSuccess: Bool { (200..<300).contains(status) }
}

/// The state of one webhook endpoint: the time of its next attempt after a failure, the id of its
/// current message, and whether it is disabled. Times are on the caller's monotonic clock, ms.
///
/// The waits are those that Standard Webhooks suggests. The content is determined again for each
/// attempt; waiting attempts are stored with the owed notifications (``DeliveryAttempts``).
package struct WebhookSchedule: Sendable, Hashable {
    /// The waits after consecutive failures, ms; the last applies to all further ones.
    package static let waits: [Int64] = [
        5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 50_400_000, 72_000_000,
        86_400_000,
    ]
    /// The longest wait that an endpoint may request, ms.
    package static let retryAfterMax: Int64 = 86_400_000
    /// The longest random addition to a wait, ms; at most a quarter of it.
    package static let jitterMax: Int64 = 3_600_000
    /// The time of failures without a success after which an endpoint is disabled, ms.
    package static let failingMax: Int64 = 5 * 86_400_000

    /// The reason why nothing is sent until the endpoint is enabled again.
    package enum Disabled: UInt8, Sendable {
        /// The endpoint responded with 410.
        case gone = 1
        /// The endpoint failed for too long.
        case failing = 2
    }

    /// An attempt to deliver a message.
    package struct Attempt: Sendable, Hashable {
        /// The number of the message, from 1; another number is another `webhook-id`.
        package let message: UInt64
        /// Whether a person requested it.
        package let isManual: Bool
    }

    /// The consequence of a response.
    package enum Outcome: Sendable, Hashable {
        /// The endpoint accepted the message.
        case delivered
        /// The endpoint did not accept it; the next attempt is not before this time.
        case retry(at: Int64)
        /// The endpoint was disabled.
        case disabled(Disabled)
        /// An attempt requested by a person failed; it has no consequence.
        case failed
    }

    /// The number of the last message; 0 before the first.
    package private(set) var message: UInt64
    /// A hash of the last message's content.
    package private(set) var content: UInt64
    /// Whether the endpoint accepted the last message.
    package private(set) var isDelivered: Bool
    /// The number of consecutive failures.
    package private(set) var failures: Int
    /// The reason why the endpoint is disabled; `nil` if it is not.
    package private(set) var disabled: Disabled?
    /// The time of the first of the ``failures``.
    private var failingSince: Int64

    package init() {
        message = 0
        content = 0
        isDelivered = true
        failures = 0
        failingSince = 0
    }

    /// Begins an attempt to send `content`, given as a hash. It is the message of the previous
    /// attempt if that had the same content and was not accepted, or if a person repeats it.
    package mutating func attempt(saying content: UInt64, isManual: Bool = false) -> Attempt {
        let isSame = message > 0 && content == self.content && (isManual || !isDelivered)
        if !isSame {
            message += 1
            self.content = content
            isDelivered = false
        }
        return Attempt(message: message, isManual: isManual)
    }

    /// Applies the response to an attempt.
    ///
    /// Any 2xx is a success; redirects are not followed and count as failures. A person's attempt
    /// does not affect the endpoint's health, and a disabled endpoint stays disabled.
    ///
    /// - Parameter response: `nil` when there was none before the timeout, or when the address is
    ///   not permitted.
    package mutating func answered(
        _ response: WebhookResponse?, to attempt: Attempt, now: Int64, random: UInt64
    ) -> Outcome {
        if response?.isSuccess == true {
            if attempt.message == message { isDelivered = true }
            if !attempt.isManual { failures = 0 }
            return .delivered
        }
        guard !attempt.isManual else { return .failed }
        if let disabled { return .disabled(disabled) }
        if failures == 0 { failingSince = now }
        failures = min(failures + 1, 1_000)
        var asked: Int64 = 0
        if let response {
            if response.status == 410 { return disable(.gone) }
            asked = min(max(response.retryAfter ?? 0, 0), Self.retryAfterMax / 1_000) * 1_000
        }
        if now.elapsed(since: failingSince) >= Self.failingMax { return disable(.failing) }
        let wait = max(asked, Self.waits[min(failures, Self.waits.count) - 1])
        let jitter = Backoff.part(of: min(wait / 4, Self.jitterMax), random: random)
        return .retry(at: now.later(by: wait + jitter))
    }

    /// Enables the endpoint after it was registered again, or at an operator's request.
    package mutating func enable() {
        disabled = nil
        failures = 0
    }

    private mutating func disable(_ reason: Disabled) -> Outcome {
        disabled = reason
        return .disabled(reason)
    }
}

extension WebhookSchedule {
    /// Writes the schedule in stored form.
    func save(to text: inout SavedText, now: Int64, wall: Int64) {
        text.number("savedAt", wall)
        text.bits("message", message)
        text.bits("content", content)
        text.flag("delivered", isDelivered)
        text.number("failures", Int64(failures))
        text.number("failingFor", failures > 0 ? now.elapsed(since: failingSince) : 0)
        text.number("disabled", Int64(disabled?.rawValue ?? 0))
    }

    /// Restores a stored schedule. At most a day of the elapsed time counts, so that a clock that
    /// was set does not disable the endpoint.
    ///
    /// - Throws: ``UnreadableState``.
    init(_ value: JSONValue, now: Int64, wall: Int64) throws {
        let saved = try SavedMembers(value)
        message = try saved.bits("message")
        content = try saved.bits("content")
        isDelivered = try saved.flag("delivered")
        failures = min(max(Int(clamping: try saved.number("failures")), 0), 1_000)
        let known = min(max(try saved.number("failingFor"), 0), Self.failingMax)
        let away = TimeAway.between(try saved.number("savedAt"), wall)
        failingSince = now.later(by: -(known + away))
        disabled = Disabled(rawValue: UInt8(clamping: try saved.number("disabled")))
    }
}
