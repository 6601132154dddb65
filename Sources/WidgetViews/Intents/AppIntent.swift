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
    /// The type of ``parameterSummary``.
    associatedtype SummaryContent: ParameterSummary = EmptyParameterSummary
    /// The type that declares a parameter of the intent.
    typealias Parameter = IntentParameter
    /// The type of a sentence that names the intent's parameters.
    typealias Summary = IntentParameterSummary<Self>

    /// The display name of the action: a verb and a noun.
    static var title: LocalizedStringResource { get }
    /// The purpose of the intent, for display.
    static var description: Description { get }
    /// Whether the app comes to the foreground for the intent, which then runs in the app's
    /// process.
    static var openAppWhenRun: Bool { get }
    /// A sentence that names the parameters, for editors.
    static var parameterSummary: SummaryContent { get }

    /// Creates the intent with the default values of its parameters.
    init()

    /// Performs the action. When it returns, the widget's timeline is reloaded, so the data that
    /// the provider reads must be in place by then. Handle errors here and show them in the widget.
    ///
    /// - Throws: The reason for the failure. A toggle then reverts, and shows the
    ///   `errorDescription` of a `LocalizedError`; the timeline is reloaded nevertheless.
    func perform() async throws -> PerformResult
}

extension AppIntent where SummaryContent == EmptyParameterSummary {
    /// No sentence: an editor lists the parameters.
    public static var parameterSummary: EmptyParameterSummary { EmptyParameterSummary() }
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
    /// In a configuration, an optional parameter of an entity that was deleted is `nil`; an action
    /// must not take that for a choice.
    ///
    /// - Throws: ``IntentError``, or the error of a query.
    package static func resolved(from values: [String: ParameterValue]) async throws -> Self {
        let intent = Self()
        for (name, parameter) in intent.intentParameters {
            let hasValue: Bool
            do {
                hasValue = try await parameter.fill(
                    from: values[name],
                    forgetsDeleted: Self.self is any WidgetConfigurationIntent.Type)
            } catch let error as IntentValueError {
                throw IntentError(
                    parameter: name, reason: error.description,
                    isOfDeletedEntity: error.isOfDeletedEntity)
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
    /// Whether the chosen entity was deleted, so that a retry gives the same error.
    package var isOfDeletedEntity = false

    /// The parameter's name and the reason.
    public var description: String { "parameter \(parameter): \(reason)" }
}

/// The result of ``AppIntent/perform()``.
public protocol IntentResult: Sendable {}

/// A result with a text to say.
public protocol ProvidesDialog: IntentResult {
    /// The text.
    var dialog: IntentDialog? { get }
}

/// A result with a value, for automations.
public protocol ReturnsValue<Value>: IntentResult {
    /// The type of the value.
    associatedtype Value: Sendable
    /// The value.
    var value: Value? { get }
}

/// A result with a value, a text, both or none; `Never` stands for what it lacks.
public struct IntentResultContainer<Value: Sendable, Dialog: Sendable>: ReturnsValue {
    /// The value.
    public let value: Value?
    /// The text.
    public let dialog: Dialog?
}

extension IntentResultContainer: ProvidesDialog where Dialog == IntentDialog {}

extension IntentResult where Self == IntentResultContainer<Never, Never> {
    /// Returns a result without a value.
    public static func result() -> IntentResultContainer<Never, Never> {
        .init(value: nil, dialog: nil)
    }
}

extension IntentResult where Self == IntentResultContainer<Never, IntentDialog> {
    /// Returns a result with a text.
    public static func result(dialog: IntentDialog) -> IntentResultContainer<Never, IntentDialog> {
        .init(value: nil, dialog: dialog)
    }
}

extension IntentResult {
    /// Returns a result with a value.
    public static func result<Value: Sendable>(
        value: Value
    ) -> IntentResultContainer<Value, Never> where Self == IntentResultContainer<Value, Never> {
        .init(value: value, dialog: nil)
    }

    /// Returns a result with a value and a text.
    public static func result<Value: Sendable>(
        value: Value, dialog: IntentDialog
    ) -> IntentResultContainer<Value, IntentDialog>
    where Self == IntentResultContainer<Value, IntentDialog> {
        .init(value: value, dialog: dialog)
    }
}

/// An intent that sets something to a value, such as that of a control's toggle.
public protocol SetValueIntent: AppIntent {
    /// The type of the value.
    associatedtype ValueType: IntentValue
    /// The new value.
    var value: ValueType { get set }
}

/// A sentence that names the parameters of an intent.
public protocol ParameterSummary: Sendable {
    /// The sentence, with the name of each parameter in `${}`.
    var sentence: String { get }
}

/// No sentence.
public struct EmptyParameterSummary: ParameterSummary {
    /// The sentence, which is empty.
    public var sentence: String { "" }
}

/// A sentence that names the parameters of an intent: `Summary("Show \(\.$city)")`.
public struct IntentParameterSummary<Intent: AppIntent>: ParameterSummary,
    ExpressibleByStringInterpolation
{
    /// The sentence, with the name of each parameter in `${}`.
    public let sentence: String

    /// Creates a sentence.
    public init(_ summary: Self) { self = summary }
    /// Creates a sentence without parameters.
    public init(stringLiteral sentence: String) { self.sentence = sentence }
    /// Creates a sentence from its parts.
    public init(stringInterpolation parts: StringInterpolation) { sentence = parts.sentence }

    /// The parts of a sentence, as a literal is read.
    public struct StringInterpolation: StringInterpolationProtocol {
        var sentence = ""

        /// Creates an empty sentence.
        public init(literalCapacity: Int, interpolationCount: Int) {}
        /// Appends words.
        public mutating func appendLiteral(_ words: String) { sentence += words }
        /// Appends the name of a parameter.
        public mutating func appendInterpolation<Value: IntentValue>(
            _ parameter: KeyPath<Intent, IntentParameter<Value>>
        ) {
            sentence += "${\(Intent()[keyPath: parameter].title.text)}"
        }
    }
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
    /// The type of the parameter, from which an editor makes its field.
    public var type: ParameterType { parameter.type }
    /// The least and the greatest value; `nil` for none.
    public var range: ClosedRange<Double>? { parameter.range }
    /// The parameter's type in a catalog, such as `Int`, an entity's name, or `[String]`.
    public var catalogType: String { type.names.inCatalog }
    /// Whether the parameter may have no value.
    public var isOptional: Bool { parameter.isOptional }

    private let parameter: any AnyIntentParameter

    init(name: String, parameter: any AnyIntentParameter) {
        self.name = name
        self.parameter = parameter
    }

    package var hasDefault: Bool { parameter.hasDefault }

    /// Returns the reason why a value cannot be that of the parameter; `nil` when it can. Whether
    /// an entity exists is not checked.
    public func fault(in value: ParameterValue) -> IntentError? {
        guard value != .unset else { return nil }
        let error =
            type.accepts(value)
            ? parameter.rangeFault(of: value)
            : IntentValueError.malformed(expected: type.names.expected)
        return error.map { IntentError(parameter: name, reason: $0.description) }
    }

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
}

extension [IntentParameterDeclaration] {
    /// Returns the faults of the values of a widget that is about to be placed: those that have
    /// another form than their parameter, or a name that no parameter has.
    public func faults(in values: [String: ParameterValue]) -> [IntentError] {
        values.sorted { $0.key < $1.key }.compactMap { name, value in
            guard let parameter = first(where: { $0.name == name }) else {
                return IntentError(parameter: name, reason: "the intent has no such parameter")
            }
            return parameter.fault(in: value)
        }
    }
}
