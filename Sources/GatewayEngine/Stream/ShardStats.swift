import GatewayCore

/// The status of an event loop's shard for operators, published once a second.
package struct ShardStats: Sendable {
    /// The number of raised keys that waited for the end of a collapse window.
    package var collapsed: UInt64 = 0
    /// The number of streams that accept no bytes.
    package var lagging = 0
    /// The contents of each app's window of versions.
    package var windows: [Shard.WindowStats] = []
}
