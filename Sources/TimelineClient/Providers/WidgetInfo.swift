import WidgetModel

/// A widget as a person configured it: kind, family and values. There is no instance id, so two
/// widgets configured alike are equal, and one timeline serves both (article "Making a configurable
/// widget", "Access customized values in your app").
public struct WidgetInfo: Sendable, Hashable {
    /// The widget kind, byte for byte as declared.
    public var kind: String
    /// The family.
    public var family: WidgetFamily
    /// The resolved intent parameters; empty for a widget nobody can configure.
    public var configuration: [String: ParameterValue]

    /// A configured widget.
    public init(
        kind: String, family: WidgetFamily, configuration: [String: ParameterValue] = [:]
    ) {
        self.kind = kind
        self.family = family
        self.configuration = configuration
    }

    /// A widget configured with an intent.
    public init(
        kind: String, family: WidgetFamily, intent: some WidgetConfigurationIntent
    ) {
        self.init(kind: kind, family: family, configuration: intent.parameters)
    }

    /// The configuration as an intent of the given type, its entities found by their queries; `nil`
    /// when it cannot be made of it.
    public func widgetConfigurationIntent<Intent: WidgetConfigurationIntent>(
        of type: Intent.Type
    ) async -> Intent? {
        try? await Intent.resolved(from: configuration)
    }
}
