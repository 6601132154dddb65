import WidgetModel

/// A timeline by what tells it apart for rules; a parameter that is unset is not named.
struct TimelineName: Sendable, Hashable {
    let kind: String
    let parameters: [String: ParameterValue]

    init(_ kind: String, _ parameters: [String: ParameterValue]) {
        self.kind = kind
        self.parameters = parameters.filter { $0.value != .unset }
    }
}

/// One timeline that a client says it rebuilt.
struct Rebuilt: Sendable {
    /// Which.
    let name: TimelineName
    /// How long it took; `nil` when the client does not say.
    let milliseconds: Double?
}
