import GatewayCore

/// The status of an event loop's shard for operators, published once a second.
package struct ShardFigures: Sendable {
    /// Raised keys that waited for the end of a collapse window.
    package var collapsed: UInt64 = 0
    /// Streams that take no bytes.
    package var lagging = 0
    /// The contents of each app's window of versions.
    package var windows: [Shard.WindowFigures] = []
}
