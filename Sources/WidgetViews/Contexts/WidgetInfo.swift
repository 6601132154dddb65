import WidgetModel

/// A widget as a person configured it: kind, family and values. There is no instance id, so two
/// widgets with the same configuration are equal and share one timeline (article "Making a
/// configurable widget", "Access customized values in your app").
public struct WidgetInfo: Sendable, Hashable, Identifiable {
    /// The widget kind, byte for byte as declared.
    public var kind: String
    /// The family.
    public var family: WidgetFamily
    /// The resolved intent parameters; empty for a widget without configuration.
    public var configuration: [String: ParameterValue] {
        didSet { if configuration != oldValue { intent.value = nil } }
    }
    /// The widget itself, as in WidgetKit.
    public var id: WidgetInfo { self }
    /// The intent with these values, where it is known: it says the same as the values.
    private var intent = Uncompared<(any WidgetConfigurationIntent)?>(value: nil)

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
        self.intent.value = intent
    }

    /// Returns the configuration as an intent of the given type; `nil` when the intent cannot be
    /// created. ``WidgetCenter``, and the activity with which a tap opens the app, find its
    /// entities beforehand; for a widget from elsewhere call ``resolved(as:)``.
    public func widgetConfigurationIntent<Intent: WidgetConfigurationIntent>(
        of type: Intent.Type
    ) -> Intent? {
        intent.value as? Intent
    }

    /// Returns the widget with its configuration as an intent of the given type, whose entities are
    /// found by their queries; without one when the intent cannot be created.
    public func resolved<Intent: WidgetConfigurationIntent>(as type: Intent.Type) async -> Self {
        var info = self
        info.intent.value = try? await Intent.resolved(from: configuration)
        return info
    }
}

/// A part of a value that makes it no other: two of them are equal, whatever they hold.
struct Uncompared<Value: Sendable>: Sendable, Hashable {
    var value: Value

    static func == (left: Self, right: Self) -> Bool { true }
    func hash(into hasher: inout Hasher) {}
}
