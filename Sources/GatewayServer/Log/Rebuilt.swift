import GatewayCore

/// One timeline that a client says it rebuilt.
struct Rebuilt: Sendable {
    /// Which.
    let name: TimelineName
    /// How long it took; `nil` when the client does not say.
    let milliseconds: Double?
}
