/// Limits of open streams.
package struct StreamSettings: Sendable, Equatable {
    /// The time after which a stream that accepts no bytes is closed, in milliseconds; it resumes
    /// from its cursor without loss.
    package var stallMilliseconds: Int64 = 30_000
    /// The reconnection time sent to every reader at the start, in milliseconds.
    package var retryMilliseconds = 2_000
    /// The reconnection times sent when the gateway stops, spread so that readers do not all return
    /// at once.
    package var drainRetryMilliseconds = 500...5_000

    /// Creates the default settings.
    package init() {}
}
