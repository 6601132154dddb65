import WidgetModel

/// The identity of a timeline for rules; unset parameters are omitted.
package struct TimelineID: Sendable, Hashable {
    /// The kind of the widgets that show it.
    package let kind: String
    /// The parameter values of these widgets.
    package let parameters: [String: ParameterValue]

    /// Creates the name of a kind's timelines with these values.
    package init(_ kind: String, _ parameters: [String: ParameterValue]) {
        self.kind = kind
        self.parameters = parameters.filter { $0.value != .unset }
    }
}
