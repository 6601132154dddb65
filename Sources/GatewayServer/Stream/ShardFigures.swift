import GatewayCore

/// How an event loop's shard stands, for operators: said once a second.
struct ShardFigures: Sendable {
    /// Raised keys that waited for the end of a collapse window.
    var collapsed: UInt64 = 0
    /// Streams that take no bytes.
    var lagging = 0
    /// What each app's window of versions remembers.
    var windows: [Shard.WindowFigures] = []
}
