/// Decides when the owner of a session connects again, to which server, and when it gives a session
/// up that does not answer.
struct RequestPacing: Sendable {
    private let deadlineMilliseconds: Int64
    /// The number of requests without an answer.
    private(set) var unanswered = 0
    /// The time at which the first unanswered request is late.
    private(set) var deadline: Int64?
    /// The index of the server to connect to, modulo their number.
    private(set) var server = 0
    /// The attempts to connect since the last success.
    private var attempts = 0

    /// - Parameter deadlineMilliseconds: The longest time that a request waits for its answer.
    init(deadlineMilliseconds: Int64) { self.deadlineMilliseconds = deadlineMilliseconds }

    /// Records that requests were sent.
    mutating func didSend(_ count: Int, at now: Int64) {
        unanswered += count
        deadline = now + deadlineMilliseconds
    }

    /// Records a part of an answer.
    mutating func didReceivePart(at now: Int64) { deadline = now + deadlineMilliseconds }

    /// Records an answer; returns `false` for one after the session was given up, which is void.
    mutating func didReceiveAnswer(at now: Int64) -> Bool {
        guard unanswered > 0 else { return false }
        unanswered -= 1
        deadline = unanswered > 0 ? now + deadlineMilliseconds : nil
        return true
    }

    /// Records that a session is of use.
    mutating func didSucceed() { attempts = 0 }

    /// Forgets the requests of a session that was given up.
    mutating func reset() { (unanswered, deadline) = (0, nil) }

    /// Returns when to connect to the next server: after 50 ms to 2 s, doubling, with full jitter, so
    /// that the nodes of a fleet do not return together.
    mutating func nextAttempt(
        at now: Int64, using generator: inout some RandomNumberGenerator
    ) -> Int64 {
        let bound = min(Int64(2_000), 50 << min(attempts, 6))
        attempts += 1
        server += 1
        return now + Int64.random(in: 0...bound, using: &generator)
    }
}
