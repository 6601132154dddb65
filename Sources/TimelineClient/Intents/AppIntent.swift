import WidgetModel

/// Something an app can do for whoever asks, without being opened: what a button or a toggle of a
/// widget calls.
///
/// Its parameters are declared with `@Parameter`. Those of a button or toggle must have values:
/// nobody is there to choose them (article "Adding interactivity to widgets and Live Activities", "Add
/// an app intent that performs the action").
public protocol AppIntent: Sendable {
    /// What ``perform()`` returns.
    associatedtype PerformResult: IntentResult
    /// What ``description`` is: an ``IntentDescription``, or an optional one.
    associatedtype Description: IntentDescribing = IntentDescription?
    /// A value of the intent.
    typealias Parameter = IntentParameter

    /// What it does, as a verb and a noun.
    static var title: LocalizedStringResource { get }
    /// What it is for.
    static var description: Description { get }
    /// Whether the app comes to the foreground for it; it then runs in the app's process.
    static var openAppWhenRun: Bool { get }

    /// The intent with the defaults of its parameters.
    init()

    /// Does it. When it returns, the widget's timeline is reloaded: what the provider reads has to
    /// be in its place by then. Errors are to be handled here, by what the widget shows.
    ///
    /// - Throws: Why it had no success. A toggle goes back then, and shows the `errorDescription` of a
    ///   `LocalizedError`; the timeline is reloaded all the same.
    func perform() async throws -> PerformResult
}

extension AppIntent {
    /// None.
    public static var description: IntentDescription? { nil }

    /// What it is for, however the intent states it; `nil` when it does not.
    public static var intentDescription: IntentDescription? { description.intentDescription }
    /// Without opening the app.
    public static var openAppWhenRun: Bool { false }

    /// The values of the parameters by name, as they are stored: what the gateway matches changes
    /// against.
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
            // A wrapped property's storage has its name behind an underscore.
            return (label.hasPrefix("_") ? String(label.dropFirst()) : label, parameter)
        }
    }

    /// The intent with what is stored; what nobody chose gets its default.
    ///
    /// - Throws: ``IntentError``, or what a query throws.
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

/// Why an intent cannot be made of what is stored.
public struct IntentError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The name of the parameter.
    public let parameter: String
    /// What is wrong with it; no value that a person chose.
    public let reason: String

    /// Both.
    public var description: String { "parameter \(parameter): \(reason)" }
}

/// What ``AppIntent/perform()`` returns.
public protocol IntentResult: Sendable {}

/// A result without a value.
public struct EmptyIntentResult: IntentResult {}

extension IntentResult where Self == EmptyIntentResult {
    /// Done.
    public static func result() -> EmptyIntentResult { EmptyIntentResult() }
}

/// What a person can choose about a widget. The order of the parameters is the order in which they
/// are asked for (article "Making a configurable widget").
public protocol WidgetConfigurationIntent: AppIntent {}

extension WidgetConfigurationIntent {
    /// Nothing: it only holds what was chosen.
    public func perform() async throws -> some IntentResult { .result() }
}

/// A parameter of a declared intent, for whoever lets people choose.
public struct IntentParameterDeclaration: Sendable {
    /// Its name in the code, and in the catalog.
    public let name: String
    /// How it is called.
    public var title: LocalizedStringResource { parameter.title }
    /// What it is for.
    public var description: LocalizedStringResource? { parameter.description }
    /// How its type is called.
    public var typeName: LocalizedStringResource { parameter.typeName }
    /// Whether it may stay without a value.
    public var isOptional: Bool { parameter.isOptional }

    private let parameter: any AnyIntentParameter

    init(name: String, parameter: any AnyIntentParameter) {
        self.name = name
        self.parameter = parameter
    }

    var hasDefault: Bool { parameter.hasDefault }

    /// The value where nobody chooses one; `nil` when there is none at the moment.
    ///
    /// - Throws: What the query of its type throws.
    public func defaultValue() async throws -> ParameterValue? {
        try await parameter.defaultValue()
    }

    /// What somebody may choose from, such as the suggested entities; `nil` when any value will do.
    /// With `text` only what matches what was typed.
    ///
    /// - Throws: What the query of its type throws.
    public func options(matching text: String? = nil) async throws -> [ParameterOption]? {
        try await parameter.options(matching: text)
    }
}

extension WidgetConfigurationIntent {
    /// The parameters, in the order in which they are asked for.
    public static var parameterDeclarations: [IntentParameterDeclaration] {
        Self().intentParameters.map { IntentParameterDeclaration(name: $0, parameter: $1) }
    }

    /// The names of parameters that may be left without any value, which none may.
    static var parametersWithoutDefault: [String] {
        parameterDeclarations.filter { !$0.hasDefault }.map(\.name)
    }
}
