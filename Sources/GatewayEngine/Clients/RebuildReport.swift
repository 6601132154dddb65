import GatewayCore

/// A client's report that it rebuilt a timeline.
package struct RebuildReport: Sendable {
    let name: TimelineID
    /// The duration; `nil` if the client does not report it.
    let milliseconds: Double?
    /// Whether the timeline is equal to the one before.
    let isUnchanged: Bool

    package init(name: TimelineID, milliseconds: Double?, isUnchanged: Bool = false) {
        self.name = name
        self.milliseconds = milliseconds
        self.isUnchanged = isUnchanged
    }
}
