import WidgetModel

/// An action that an app offers to the system without being opened, such as the action of a
/// widget's button or toggle.
///
/// Its parameters are declared with `@Parameter`. Those of a button or toggle must have values,
/// because no person can choose them there (article "Adding interactivity to widgets and Live
/// Activities", "Add an app intent that performs the action").
public protocol AppIntent: Sendable {
    /// The type of the result of ``perform()``.
    associatedtype PerformResult: IntentResult
    /// The type of ``description``: an ``IntentDescription``, or an optional one.
    associatedtype Description: IntentDescribing = IntentDescription?
    /// The type that declares a parameter of the intent.
    typealias Parameter = IntentParameter

    /// The display name of the action: a verb and a noun.
    static var title: LocalizedStringResource { get }
    /// The purpose of the intent, for display.
    static var description: Description { get }
    /// Whether the app comes to the foreground for the intent, which then runs in the app's
    /// process.
    static var openAppWhenRun: Bool { get }

    /// Creates the intent with the default values of its parameters.
    init()

    /// Performs the action. When it returns, the widget's timeline is reloaded, so the data that
    /// the provider reads must be in place by then. Handle errors here and show them in the widget.
    ///
    /// - Throws: The reason for the failure. A toggle then reverts, and shows the
    ///   `errorDescription` of a `LocalizedError`; the timeline is reloaded nevertheless.
    func perform() async throws -> PerformResult
}

extension AppIntent {
    /// Returns `nil`: no description by default.
    public static var description: IntentDescription? { nil }

    /// The description, whether the intent declares it as optional or not; `nil` if there is none.
    public static var intentDescription: IntentDescription? { description.intentDescription }
    /// Returns `false`: the app stays closed by default.
    public static var openAppWhenRun: Bool { false }

    /// The stored values of the parameters, by name. The gateway matches changes against them.
    public var parameters: [String: ParameterValue] {
        Dictionary(
            intentParameters.map { ($0.name, $0.parameter.parameterValue) },
            uniquingKeysWith: { $1 })
    }

    /// The parameters in the order of their declaration.
    var intentParameters: [(name: String, parameter: any AnyIntentParameter)] {
        Mirror(reflecting: self).children.compactMap { child in
            guard let label = child.label, let parameter = child.value as? any AnyIntentParameter
            else { return nil }
            // The stored property behind a property wrapper has a leading underscore.
            return (label.hasPrefix("_") ? String(label.dropFirst()) : label, parameter)
        }
    }

    /// Returns the intent with stored values. Parameters without a stored value get their default.
    ///
    /// - Throws: ``IntentError``, or the error of a query.
    static func resolved(from values: [String: ParameterValue]) async throws -> Self {
        let intent = Self()
        for (name, parameter) in intent.intentParameters {
            let hasValue: Bool
            do {
                hasValue = try await parameter.fill(from: values[name])
            } catch let error as IntentValueError {
                throw IntentError(parameter: name, reason: error.description)
            }
            guard hasValue else {
                throw IntentError(
                    parameter: name,
                    reason: "nothing was chosen, and the query has no default at the moment")
            }
        }
        return intent
    }
}

/// The reason why an intent cannot be created from stored values.
public struct IntentError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The name of the parameter.
    public let parameter: String
    /// The fault. It never includes a value that a person chose.
    public let reason: String

    /// The parameter's name and the reason.
    public var description: String { "parameter \(parameter): \(reason)" }
}

/// The result of ``AppIntent/perform()``.
public protocol IntentResult: Sendable {}

/// A result without a value.
public struct EmptyIntentResult: IntentResult {}

extension IntentResult where Self == EmptyIntentResult {
    /// Returns a result without a value.
    public static func result() -> EmptyIntentResult { EmptyIntentResult() }
}

/// The configuration of a widget that a person can choose. The parameters are presented in the
/// order of their declaration (article "Making a configurable widget").
public protocol WidgetConfigurationIntent: AppIntent {}

extension WidgetConfigurationIntent {
    /// Does nothing: a configuration intent only holds the chosen values.
    public func perform() async throws -> some IntentResult { .result() }
}

/// A parameter of a declared intent, for user interfaces that let people choose its value.
public struct IntentParameterDeclaration: Sendable {
    /// The name in the code and in the catalog.
    public let name: String
    /// The display name of the parameter.
    public var title: LocalizedStringResource { parameter.title }
    /// The purpose of the parameter, for display.
    public var description: LocalizedStringResource? { parameter.description }
    /// The display name of the parameter's type.
    public var typeName: LocalizedStringResource { parameter.typeName }
    /// Whether the parameter may have no value.
    public var isOptional: Bool { parameter.isOptional }

    private let parameter: any AnyIntentParameter

    init(name: String, parameter: any AnyIntentParameter) {
        self.name = name
        self.parameter = parameter
    }

    var hasDefault: Bool { parameter.hasDefault }

    /// Returns the value for a person who chose none; `nil` when there is none at the moment.
    ///
    /// - Throws: The error of the type's query.
    public func defaultValue() async throws -> ParameterValue? {
        try await parameter.defaultValue()
    }

    /// Returns the values to choose from, such as the suggested entities; `nil` when any value is
    /// valid. With `text`, returns only values that match it.
    ///
    /// - Throws: The error of the type's query.
    public func options(matching text: String? = nil) async throws -> [ParameterOption]? {
        try await parameter.options(matching: text)
    }
}

extension WidgetConfigurationIntent {
    /// The parameters in the order in which they are presented.
    public static var parameterDeclarations: [IntentParameterDeclaration] {
        Self().intentParameters.map { IntentParameterDeclaration(name: $0, parameter: $1) }
    }

    /// The names of the parameters without a default. Such parameters are not allowed.
    static var parametersWithoutDefault: [String] {
        parameterDeclarations.filter { !$0.hasDefault }.map(\.name)
    }
}
