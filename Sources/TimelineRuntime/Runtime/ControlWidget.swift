import WidgetModel
import WidgetViews

/// A control of an app, such as a button or a toggle in Control Center.
public protocol ControlWidget: Sendable {
    /// The type of ``body``.
    associatedtype Body: ControlWidgetConfiguration

    /// Creates the control.
    init()
    /// The declaration of the control.
    var body: Body { get }
}

/// A control as an app declares it: a ``StaticControlConfiguration`` or an
/// ``AppIntentControlConfiguration``, with its modifiers.
public protocol ControlWidgetConfiguration: Sendable {
    /// The declaration with its types erased.
    var declaration: AnyControlConfiguration { get }
}

/// The content of a control: a ``ControlWidgetButton`` or a ``ControlWidgetToggle``.
public protocol ControlWidgetTemplate: View {}

/// The configuration of a control that a person can choose.
public protocol ControlConfigurationIntent: WidgetConfigurationIntent {}

/// Provides the value that a control shows.
public protocol ControlValueProvider: Sendable {
    /// The type of the value.
    associatedtype Value: Sendable

    /// A value for a gallery.
    var previewValue: Value { get }
    /// Returns the value now. The data it fetches must be at least as new as the call.
    ///
    /// - Throws: The reason why there is none. The shown value stays.
    func currentValue() async throws -> Value
}

/// Provides the value that a control shows for the configuration that a person chose.
public protocol AppIntentControlValueProvider: Sendable {
    /// The type of the configuration.
    associatedtype Configuration: ControlConfigurationIntent
    /// The type of the value.
    associatedtype Value: Sendable

    /// Returns a value for a gallery.
    func previewValue(configuration: Configuration) -> Value
    /// Returns the value now. The data it fetches must be at least as new as the call.
    ///
    /// - Throws: The reason why there is none. The shown value stays.
    func currentValue(configuration: Configuration) async throws -> Value
}

/// A control without configuration.
public struct StaticControlConfiguration: ControlWidgetConfiguration {
    /// The declaration with its types erased.
    public let declaration: AnyControlConfiguration

    /// Declares a control without a value. Its kind is the same string as in the catalog.
    public init(kind: String, content: @escaping @Sendable () -> some ControlWidgetTemplate) {
        declaration = AnyControlConfiguration(kind: kind) { _, environment, _ in
            environment.draw { content() }
        }
    }

    /// Declares a control that shows a value.
    public init<Provider: ControlValueProvider>(
        kind: String, provider: Provider,
        content: @escaping @Sendable (Provider.Value) -> some ControlWidgetTemplate
    ) {
        declaration = AnyControlConfiguration(kind: kind) { _, environment, isPreview in
            let value = try await isPreview ? provider.previewValue : provider.currentValue()
            return environment.draw { content(value) }
        }
    }
}

/// A control that people configure with an app intent.
public struct AppIntentControlConfiguration<Intent: ControlConfigurationIntent>:
    ControlWidgetConfiguration
{
    /// The declaration with its types erased.
    public let declaration: AnyControlConfiguration

    /// Declares a control that shows its configuration.
    public init(
        kind: String, intent: Intent.Type = Intent.self,
        content: @escaping @Sendable (Intent) -> some ControlWidgetTemplate
    ) {
        declaration = Self.declared(kind) { values, environment, _ in
            let intent = try await Intent.resolved(from: values)
            return environment.draw { content(intent) }
        }
    }

    /// Declares a control that shows a value.
    public init<Provider: AppIntentControlValueProvider>(
        kind: String, provider: Provider,
        content: @escaping @Sendable (Provider.Value) -> some ControlWidgetTemplate
    ) where Provider.Configuration == Intent {
        declaration = Self.declared(kind) { values, environment, isPreview in
            let intent = try await Intent.resolved(from: values)
            let value =
                try await isPreview
                ? provider.previewValue(configuration: intent)
                : provider.currentValue(configuration: intent)
            return environment.draw { content(value) }
        }
    }

    private static func declared(
        _ kind: String, _ draw: @escaping AnyControlConfiguration.Draw
    ) -> AnyControlConfiguration {
        var declaration = AnyControlConfiguration(kind: kind, draw: draw)
        declaration.parameters = Intent.parameterDeclarations
        declaration.intent = "\(Intent.self)"
        return declaration
    }
}

/// A declared control with its types erased.
public struct AnyControlConfiguration: ControlWidgetConfiguration {
    typealias Values = [String: ParameterValue]
    typealias Draw = @Sendable (Values, WidgetEnvironment, Bool) async throws -> WidgetNode

    /// The control kind.
    public let kind: String
    /// The display name; the kind unless the app sets another.
    public internal(set) var displayName: LocalizedStringResource
    /// The description for people who choose a control.
    public internal(set) var description: LocalizedStringResource?
    /// The configurable parameters in the order in which they are presented.
    public internal(set) var parameters: [IntentParameterDeclaration] = []
    /// Whether people are asked for the configuration when they add the control.
    public internal(set) var asksForConfiguration = false
    /// The push handler; `nil` for a control that does not accept pushes.
    public internal(set) var pushHandler: (any ControlPushHandler.Type)?
    var intent: String?
    let draw: Draw

    init(kind: String, draw: @escaping Draw) {
        self.kind = kind
        displayName = LocalizedStringResource(kind)
        self.draw = draw
    }

    /// The declaration itself.
    public var declaration: AnyControlConfiguration { self }
}

extension ControlWidgetConfiguration {
    private func with(
        _ change: (inout AnyControlConfiguration) -> Void
    ) -> AnyControlConfiguration {
        var declaration = declaration
        change(&declaration)
        return declaration
    }

    /// Sets the control's display name.
    public func displayName(_ name: LocalizedStringResource) -> some ControlWidgetConfiguration {
        with { $0.displayName = name }
    }

    /// Sets the description for people who choose a control.
    public func description(_ text: LocalizedStringResource) -> some ControlWidgetConfiguration {
        with { $0.description = text }
    }

    /// Asks people for the configuration when they add the control.
    public func promptsForUserConfiguration() -> some ControlWidgetConfiguration {
        with { $0.asksForConfiguration = true }
    }

    /// Sets the push handler, so that the control accepts pushes.
    public func pushHandler(
        _ type: any ControlPushHandler.Type
    ) -> some ControlWidgetConfiguration {
        with { $0.pushHandler = type }
    }
}

/// A control that performs an intent.
public struct ControlWidgetButton<Action: AppIntent, Label: View>: ControlWidgetTemplate {
    private let action: Action
    private let label: Label

    /// Creates a button.
    public init(action: Action, @ViewBuilder label: () -> Label) {
        self.action = action
        self.label = label()
    }

    /// The button.
    public var body: some View { Button(intent: action) { label } }
}

extension ControlWidgetButton where Label == Text {
    /// Creates a button with a text as its label.
    public init(_ title: LocalizedStringKey, action: Action) {
        self.init(action: action) { Text(title) }
    }
}

/// A control that turns something on or off: its intent gets the new state as its value.
public struct ControlWidgetToggle<Action: SetValueIntent, Label: View, ValueLabel: View>:
    ControlWidgetTemplate
where Action.ValueType == Bool {
    private let isOn: Bool
    private let action: Action
    private let label: Label
    private let valueLabel: @Sendable (Bool) -> ValueLabel

    /// Creates a toggle.
    ///
    /// - Parameter valueLabel: The label of a state, on or off.
    public init(
        isOn: Bool, action: Action, @ViewBuilder label: () -> Label,
        @ViewBuilder valueLabel: @escaping @Sendable (Bool) -> ValueLabel
    ) {
        self.isOn = isOn
        var action = action
        action.value = !isOn
        self.action = action
        self.label = label()
        self.valueLabel = valueLabel
    }

    /// The toggle.
    public var body: some View {
        Toggle(isOn: isOn, intent: action) { label }.toggleStyle(
            ControlToggleStyle(valueLabel: valueLabel))
    }
}

extension ControlWidgetToggle where Label == Text {
    /// Creates a toggle with a text as its label.
    public init(
        _ title: LocalizedStringKey, isOn: Bool, action: Action,
        @ViewBuilder valueLabel: @escaping @Sendable (Bool) -> ValueLabel
    ) {
        self.init(isOn: isOn, action: action, label: { Text(title) }, valueLabel: valueLabel)
    }
}

/// The look of a control's toggle: its label with that of its state.
private struct ControlToggleStyle<ValueLabel: View>: ToggleStyle {
    let valueLabel: @Sendable (Bool) -> ValueLabel

    func makeBody(configuration: Configuration) -> some View {
        VStack {
            configuration.label
            valueLabel(configuration.isOn)
        }
    }
}
