import WidgetModel

/// A timeline by what tells it apart for rules; a parameter that is unset is not named.
package struct TimelineName: Sendable, Hashable {
    /// The kind of the widgets that show it.
    package let kind: String
    /// Their parameters' values.
    package let parameters: [String: ParameterValue]

    /// The name of the timelines of a kind with these values.
    package init(_ kind: String, _ parameters: [String: ParameterValue]) {
        self.kind = kind
        self.parameters = parameters.filter { $0.value != .unset }
    }
}
