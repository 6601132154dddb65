// A new fact is added here and where the gateway creates the value; all else hands it on whole.

/// The facts about a single change that a notification of it reports in its claim `cause`.
public struct ChangeCause: Sendable, Hashable {
    /// The time of the change in the form of RFC 3339: that of the event, or else of its acceptance.
    public var time: String

    /// Creates the facts about a change.
    public init(time: String) {
        self.time = time
    }

    var json: JSONValue { ["time": .string(time)] }

    /// Reads the claim; `nil` when it lacks the time.
    init?(_ value: JSONValue?) {
        guard let time = value?.objectValue?["time"]?.stringValue else { return nil }
        self.init(time: time)
    }
}
