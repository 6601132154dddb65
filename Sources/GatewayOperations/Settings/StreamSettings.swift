/// Limits of open streams.
package struct StreamSettings: Sendable, Equatable {
    /// The time after which a stream that accepts no bytes is closed, in milliseconds; it resumes
    /// from its cursor without loss.
    package var stallMilliseconds: Int64 = 30_000
    /// The values of ``heartbeatSeconds`` that readers and proxies support: the SDK ends a stream
    /// that is silent for 45 s, and many proxies one that is for 60 s.
    package static let heartbeatSecondsRange = 1...30
    /// The interval between heartbeats of an idle stream, in seconds.
    package var heartbeatSeconds = 15
    /// The longest time for which a stream that accepts no bytes stays open, in milliseconds: each
    /// heartbeat looks whether it is over.
    package var patienceMilliseconds: Int64 { stallMilliseconds + Int64(heartbeatSeconds) * 1_000 }
    /// The reconnection time sent to every reader at the start, in milliseconds.
    package var retryMilliseconds = 2_000
    /// The reconnection times sent when the gateway stops, spread so that readers do not all return
    /// at once.
    package var drainRetryMilliseconds = 500...5_000
    /// The reconnection time sent to the reader whose place a newer stream of its client takes. It
    /// takes another one's place when it comes back, so it is not to come back soon.
    package var replacedRetryMilliseconds = 60_000

    package init() {}
}
