/// The time in which a node can neither follow nor write the log: a value without a clock.
package struct Outage: Sendable {
    /// The time that is not worth a word, in milliseconds. A fail-over of the database takes 5 s
    /// and more, and must not take every node out of its balancer.
    package static let patience: Int64 = 10_000

    private var failure: (reason: String, since: Int64)?

    package init() {}

    /// Notes that the database could not be used at a time, in milliseconds.
    package mutating func failed(_ reason: String, at now: Int64) {
        failure = (reason, failure?.since ?? now)
    }

    /// Notes that the database could be used.
    package mutating func ended() { failure = nil }

    /// The reason of the last failure, once it lasts too long; `nil` before.
    package func objection(at now: Int64) -> String? {
        failure.flatMap { now >= $0.since + Self.patience ? $0.reason : nil }
    }
}
