import GatewayCore

/// A client's report that it rebuilt a timeline.
package struct RebuildReport: Sendable {
    /// The timeline.
    let name: TimelineName
    /// The duration; `nil` when the client does not say.
    let milliseconds: Double?

    package init(name: TimelineName, milliseconds: Double?) {
        self.name = name
        self.milliseconds = milliseconds
    }
}
