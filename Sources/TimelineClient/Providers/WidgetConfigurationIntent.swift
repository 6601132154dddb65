import WidgetModel

/// What a person can choose about a widget.
public protocol WidgetConfigurationIntent: Sendable {
    /// The configuration with these values, by parameter name. A name that is missing, or
    /// ``ParameterValue/unset``, means the person chose nothing.
    ///
    /// - Throws: When no configuration can be made of them; the widget is then reported as failed.
    init(parameters: [String: ParameterValue]) throws

    /// The resolved values, by parameter name: what the gateway matches changes against. An
    /// entity or enumeration is stated by its id.
    var parameters: [String: ParameterValue] { get }
}
