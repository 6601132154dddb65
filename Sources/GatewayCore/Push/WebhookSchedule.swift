/// How one webhook endpoint fares: when it is asked again after a failure, which id a message has,
/// and when it is not asked any more. Time is the caller's monotonic milliseconds.
///
/// The steps are those Standard Webhooks suggests. What is said is decided anew for each attempt;
/// that an attempt waits is kept where what is owed is kept (``DeliveryAttempts``).
package struct WebhookSchedule: Sendable, Hashable {
    /// How long an endpoint that failed so many times in a row is left alone, in milliseconds;
    /// the last for all further ones.
    package static let waits: [Int64] = [
        5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 50_400_000, 72_000_000,
        86_400_000,
    ]
    /// The longest an endpoint may ask to be left alone, in milliseconds.
    package static let retryAfterMax: Int64 = 86_400_000
    /// The most that is added at random to a wait, in milliseconds; no more than a quarter of it.
    package static let jitterMax: Int64 = 3_600_000
    /// An endpoint that failed for so long without a success is disabled, in milliseconds.
    package static let failingMax: Int64 = 5 * 86_400_000

    /// Why nothing is sent any more, until it is enabled again.
    package enum Disabled: UInt8, Sendable {
        /// It answered 410.
        case gone = 1
        /// It failed for too long.
        case failing = 2
    }

    /// One attempt.
    package struct Attempt: Sendable, Hashable {
        /// The number of the message: another number is another `webhook-id`. Starts at 1.
        package let message: UInt64
        /// Whether a person asked for it.
        package let isManual: Bool
    }

    /// What an endpoint answered.
    package enum Answer: Sendable, Hashable {
        /// A status, and what `Retry-After` asked for, in seconds.
        case status(Int, retryAfter: Int64? = nil)
        /// Nothing, or nothing in time, or the address is one that may not be asked.
        case none
    }

    /// What follows from an answer.
    package enum Outcome: Sendable, Hashable {
        /// The endpoint took the message.
        case delivered
        /// It did not, and is not asked again before that moment.
        case retry(at: Int64)
        /// It is not asked any more.
        case disabled(Disabled)
        /// A person's attempt failed: nothing follows.
        case failed
    }

    /// The number of the last message; 0 before the first.
    package private(set) var message: UInt64
    /// A hash of what it said.
    package private(set) var content: UInt64
    /// Whether the endpoint took it.
    package private(set) var isDelivered: Bool
    /// Failures in a row.
    package private(set) var failures: Int
    /// Why nothing is sent, if so.
    package private(set) var disabled: Disabled?
    /// When the first of ``failures`` was.
    private var failingSince: Int64

    /// An endpoint that was never asked.
    package init() {
        message = 0
        content = 0
        isDelivered = true
        failures = 0
        failingSince = 0
    }

    /// An attempt to say `content`, given as a hash. It is the message of the attempt before if
    /// that said the same and was not taken, or if a person wants it said again.
    package mutating func attempt(saying content: UInt64, isManual: Bool = false) -> Attempt {
        let isSame = message > 0 && content == self.content && (isManual || !isDelivered)
        if !isSame {
            message += 1
            self.content = content
            isDelivered = false
        }
        return Attempt(message: message, isManual: isManual)
    }

    /// An attempt was answered.
    ///
    /// Any 2xx is success; redirects are not followed and count as failures. What a person tried
    /// says nothing about the endpoint's health, and an endpoint that is disabled stays so.
    package mutating func answered(
        _ answer: Answer, to attempt: Attempt, now: Int64, random: UInt64
    ) -> Outcome {
        if case .status(200..<300, _) = answer {
            if attempt.message == message { isDelivered = true }
            if !attempt.isManual { failures = 0 }
            return .delivered
        }
        guard !attempt.isManual else { return .failed }
        if let disabled { return .disabled(disabled) }
        if failures == 0 { failingSince = now }
        failures = min(failures + 1, 1_000)
        var asked: Int64 = 0
        if case .status(let status, let retryAfter) = answer {
            if status == 410 { return disable(.gone) }
            asked = min(max(retryAfter ?? 0, 0), Self.retryAfterMax / 1_000) * 1_000
        }
        if now.elapsed(since: failingSince) >= Self.failingMax { return disable(.failing) }
        let wait = max(asked, Self.waits[min(failures, Self.waits.count) - 1])
        let jitter = Int64(random % UInt64(min(wait / 4, Self.jitterMax) + 1))
        return .retry(at: now.later(by: wait + jitter))
    }

    /// The endpoint was registered again, or an operator wants it asked again.
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
    /// An endpoint as it is persisted.
    package struct Saved: Sendable, Hashable {
        /// When, in milliseconds since 1970.
        package var savedAt: Int64
        /// The number of the last message.
        package var message: UInt64
        /// A hash of what it said.
        package var content: UInt64
        /// Whether the endpoint took it.
        package var isDelivered: Bool
        /// Failures in a row.
        package var failures: Int
        /// How long ago the first of them was, in milliseconds.
        package var failingFor: Int64
        /// ``Disabled``, or 0.
        package var disabled: UInt8

        /// What was persisted.
        package init(
            savedAt: Int64, message: UInt64, content: UInt64, isDelivered: Bool, failures: Int,
            failingFor: Int64, disabled: UInt8
        ) {
            self.savedAt = savedAt
            self.message = message
            self.content = content
            self.isDelivered = isDelivered
            self.failures = failures
            self.failingFor = failingFor
            self.disabled = disabled
        }
    }

    /// The endpoint to be persisted.
    package func saved(now: Int64, wall: Int64) -> Saved {
        Saved(
            savedAt: wall, message: message, content: content, isDelivered: isDelivered,
            failures: failures,
            failingFor: failures > 0 ? now.elapsed(since: failingSince) : 0,
            disabled: disabled?.rawValue ?? 0)
    }

    /// The endpoint that was persisted. Of the time since no more than a day is believed, so that
    /// a clock that was set does not disable it.
    package init(_ saved: Saved, now: Int64, wall: Int64) {
        message = saved.message
        content = saved.content
        isDelivered = saved.isDelivered
        failures = min(max(saved.failures, 0), 1_000)
        let known = min(max(saved.failingFor, 0), Self.failingMax)
        failingSince = now.later(by: -(known + TimeAway.between(saved.savedAt, wall)))
        disabled = Disabled(rawValue: saved.disabled)
    }
}
