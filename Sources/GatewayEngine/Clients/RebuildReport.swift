import GatewayCore

/// A client's report that it rebuilt a timeline.
package struct RebuildReport: Sendable {
    /// The timeline.
    let name: TimelineID
    /// The duration; `nil` if the client does not report it.
    let milliseconds: Double?

    package init(name: TimelineID, milliseconds: Double?) {
        self.name = name
        self.milliseconds = milliseconds
    }
}
