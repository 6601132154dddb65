import WidgetModel

/// A widget as a person configured it: kind, family and values. There is no instance id, so two
/// widgets with the same configuration are equal and share one timeline (article "Making a
/// configurable widget", "Access customized values in your app").
public struct WidgetInfo: Sendable, Hashable {
    /// The widget kind, byte for byte as declared.
    public var kind: String
    /// The family.
    public var family: WidgetFamily
    /// The resolved intent parameters; empty for a widget without configuration.
    public var configuration: [String: ParameterValue]

    /// Creates a configured widget.
    public init(
        kind: String, family: WidgetFamily, configuration: [String: ParameterValue] = [:]
    ) {
        self.kind = kind
        self.family = family
        self.configuration = configuration
    }

    /// Creates a widget that is configured with an intent.
    public init(
        kind: String, family: WidgetFamily, intent: some WidgetConfigurationIntent
    ) {
        self.init(kind: kind, family: family, configuration: intent.parameters)
    }

    /// Returns the configuration as an intent of the given type, with its entities found by their
    /// queries; `nil` when the intent cannot be created.
    public func widgetConfigurationIntent<Intent: WidgetConfigurationIntent>(
        of type: Intent.Type
    ) async -> Intent? {
        try? await Intent.resolved(from: configuration)
    }
}
