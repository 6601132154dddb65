import Foundation
import WidgetModel

/// A type that an intent's parameter can have: `String`, `Int`, `Double`, `Bool`, `Date`, an
/// ``AppEnum``, an ``AppEntity``, an array of one of these, or an optional one.
public protocol IntentValue: Sendable {
    /// The form that is stored with a placed widget and compared with changes. An entity or a case
    /// of an enumeration is stored as its id.
    var parameterValue: ParameterValue { get }

    /// Returns the value for its stored form.
    ///
    /// - Throws: ``IntentValueError``, or the error of a query.
    static func resolved(from value: ParameterValue) async throws -> Self

    /// Returns the values stored as these texts, in the same order. Leaves out those that no longer
    /// exist.
    ///
    /// - Throws: ``IntentValueError``, or the error of a query.
    static func resolved(fromList texts: [String]) async throws -> [Self]

    /// Whether the type provides a value if no person chose one and the parameter declares no
    /// default.
    static var hasDefault: Bool { get }

    /// Returns the type's default; `nil` when there is none at the moment.
    ///
    /// - Throws: The error of a query.
    static func defaultValue() async throws -> Self?

    /// The display name of the type.
    static var typeName: LocalizedStringResource { get }

    /// Returns the values to choose from; `nil` when any value is valid. With `text`, returns only
    /// values that match it.
    ///
    /// - Throws: The error of a query.
    static func options(matching text: String?) async throws -> [ParameterOption]?
}

/// A value to choose from.
public struct ParameterOption: Sendable, Hashable {
    /// The value to store if it is chosen.
    public var value: ParameterValue
    /// The display name of the value.
    public var displayRepresentation: DisplayRepresentation

    /// Creates an option.
    public init(value: ParameterValue, displayRepresentation: DisplayRepresentation) {
        self.value = value
        self.displayRepresentation = displayRepresentation
    }
}

/// The reason why a stored value is not valid for a parameter's type. Does not include the value,
/// because a person chose it.
public enum IntentValueError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The stored form is malformed.
    case malformed(expected: String)
    /// The query does not find the entity.
    case entityNotFound(type: String)

    /// The fault, as a sentence without its full stop.
    public var description: String {
        switch self {
        case .malformed(let expected): "the stored value is not \(expected)"
        case .entityNotFound(let type): "the chosen \(type) no longer exists"
        }
    }
}

extension IntentValue {
    /// Resolves the texts one after the other.
    public static func resolved(fromList texts: [String]) async throws -> [Self] {
        var values: [Self] = []
        for text in texts { values.append(try await resolved(from: .single(text))) }
        return values
    }

    /// Returns `false`: no default value.
    public static var hasDefault: Bool { false }
    /// Returns `nil`: no default value.
    public static func defaultValue() async throws -> Self? { nil }
    /// Returns `nil`: any value is valid.
    public static func options(matching text: String?) async throws -> [ParameterOption]? { nil }

    /// Returns the text of a single value.
    fileprivate static func text(of value: ParameterValue, _ expected: String) throws -> String {
        guard case .single(let text) = value else {
            throw IntentValueError.malformed(expected: expected)
        }
        return text
    }

    /// Parses a single value from its text.
    fileprivate static func parsed(
        _ value: ParameterValue, _ expected: String, _ read: (String) -> Self?
    ) throws -> Self {
        guard let result = read(try text(of: value, expected)) else {
            throw IntentValueError.malformed(expected: expected)
        }
        return result
    }
}

extension String: IntentValue {
    /// The text as a single value.
    public var parameterValue: ParameterValue { .single(self) }
    /// Returns the text of a single value.
    public static func resolved(from value: ParameterValue) throws -> String {
        try text(of: value, "a text")
    }
    /// The display name "Text".
    public static var typeName: LocalizedStringResource { "Text" }
}

extension Int: IntentValue {
    /// The number in decimal.
    public var parameterValue: ParameterValue { .single(String(self)) }
    /// Returns the integer that the value states in decimal.
    public static func resolved(from value: ParameterValue) throws -> Int {
        try parsed(value, "a whole number") { Int($0) }
    }
    /// The display name "Whole number".
    public static var typeName: LocalizedStringResource { "Whole number" }
}

extension Double: IntentValue {
    /// The shortest decimal form that reads back as the same number; integers have no decimal
    /// point.
    public var parameterValue: ParameterValue {
        .single(ParameterValue.text(of: .number(self)) ?? description)
    }
    /// Returns the finite number that the value states in decimal.
    public static func resolved(from value: ParameterValue) throws -> Double {
        try parsed(value, "a number") { Double($0).flatMap { $0.isFinite ? $0 : nil } }
    }
    /// The display name "Number".
    public static var typeName: LocalizedStringResource { "Number" }
}

extension Bool: IntentValue {
    /// The text "true" or "false".
    public var parameterValue: ParameterValue { .single(self ? "true" : "false") }
    /// Returns the value of the text "true" or "false".
    public static func resolved(from value: ParameterValue) throws -> Bool {
        try parsed(value, "true or false") { Bool($0) }
    }
    /// The display name "Yes or no".
    public static var typeName: LocalizedStringResource { "Yes or no" }
    /// Returns both values.
    public static func options(matching text: String?) -> [ParameterOption]? {
        [true, false].map {
            ParameterOption(
                value: $0.parameterValue,
                displayRepresentation: DisplayRepresentation(title: $0 ? "Yes" : "No"))
        }
    }
}

extension Date: IntentValue {
    /// The time in UTC in the form of RFC 3339, to the millisecond.
    public var parameterValue: ParameterValue { .single(formatted(Self.style)) }
    /// Returns the time that the value states in the form of RFC 3339, with or without fractional
    /// seconds.
    public static func resolved(from value: ParameterValue) throws -> Date {
        try parsed(value, "a date like 2026-11-21T07:00:00.000Z") {
            (try? Date($0, strategy: style)) ?? (try? Date($0, strategy: .iso8601))
        }
    }
    /// The display name "Date".
    public static var typeName: LocalizedStringResource { "Date" }

    private static var style: Date.ISO8601FormatStyle {
        Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    }
}

extension Optional: IntentValue where Wrapped: IntentValue {
    /// The parameter value of the wrapped value; ``ParameterValue/unset`` for `nil`.
    public var parameterValue: ParameterValue { map(\.parameterValue) ?? .unset }
    /// Returns `nil` for an unset value.
    public static func resolved(from value: ParameterValue) async throws -> Wrapped? {
        if value == .unset { return nil }
        return try await Wrapped.resolved(from: value)
    }
    /// Returns `true`: `nil` is the default.
    public static var hasDefault: Bool { true }
    /// Returns `nil` as the default value.
    public static func defaultValue() -> Self? { .some(.none) }
    /// The display name of the wrapped type.
    public static var typeName: LocalizedStringResource { Wrapped.typeName }
    /// Returns the options of the wrapped type.
    public static func options(matching text: String?) async throws -> [ParameterOption]? {
        try await Wrapped.options(matching: text)
    }
}

extension Array: IntentValue where Element: IntentValue {
    /// The texts of the elements.
    public var parameterValue: ParameterValue {
        .list(flatMap { $0.parameterValue.texts })
    }
    /// Returns one element for each text.
    public static func resolved(from value: ParameterValue) async throws -> [Element] {
        guard value != .unset else { throw IntentValueError.malformed(expected: "a list") }
        return try await Element.resolved(fromList: value.texts)
    }
    /// The display name of a list of the element type.
    public static var typeName: LocalizedStringResource { "List of \(Element.typeName.text)" }
    /// Returns the options of the element type.
    public static func options(matching text: String?) async throws -> [ParameterOption]? {
        try await Element.options(matching: text)
    }
}
