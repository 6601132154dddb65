import Foundation
import WidgetModel

/// A type that a parameter of an intent may have: `String`, `Int`, `Double`, `Bool`, `Date`, an
/// ``AppEnum``, an ``AppEntity``, an array of one of these, or an optional one.
public protocol IntentValue: Sendable {
    /// The value as it is stored with a placed widget, and compared with changes: an entity or a
    /// case of an enumeration by its id.
    var parameterValue: ParameterValue { get }

    /// The value that is stored as this.
    ///
    /// - Throws: ``IntentValueError``, or what a query throws.
    static func resolved(from value: ParameterValue) async throws -> Self

    /// The values stored as these texts, in their order. Those that are there no more are left out.
    ///
    /// - Throws: ``IntentValueError``, or what a query throws.
    static func resolved(fromList texts: [String]) async throws -> [Self]

    /// Whether there is a value where nobody has chosen one and the parameter names none.
    static var hasDefault: Bool { get }

    /// That value; `nil` when there is none at the moment.
    ///
    /// - Throws: What a query throws.
    static func defaultValue() async throws -> Self?

    /// How the type is called.
    static var typeName: LocalizedStringResource { get }

    /// What somebody may choose from; `nil` when any value will do. With `text` only what matches
    /// what was typed.
    ///
    /// - Throws: What a query throws.
    static func options(matching text: String?) async throws -> [ParameterOption]?
}

/// A value that somebody may choose.
public struct ParameterOption: Sendable, Hashable {
    /// What is stored when it is chosen.
    public var value: ParameterValue
    /// How it is shown.
    public var displayRepresentation: DisplayRepresentation

    /// An option.
    public init(value: ParameterValue, displayRepresentation: DisplayRepresentation) {
        self.value = value
        self.displayRepresentation = displayRepresentation
    }
}

/// Why a stored value is no value of a parameter's type. Says nothing of the value: it is a
/// person's choice.
public enum IntentValueError: Error, Sendable, Equatable, CustomStringConvertible {
    /// It is written in another way.
    case malformed(expected: String)
    /// The query knows no such entity.
    case entityNotFound(type: String)

    /// What is wrong.
    public var description: String {
        switch self {
        case .malformed(let expected): "the stored value is not \(expected)"
        case .entityNotFound(let type): "the \(type) that was chosen is there no more"
        }
    }
}

extension IntentValue {
    /// One after the other.
    public static func resolved(fromList texts: [String]) async throws -> [Self] {
        var values: [Self] = []
        for text in texts { values.append(try await resolved(from: .single(text))) }
        return values
    }

    /// None.
    public static var hasDefault: Bool { false }
    /// None.
    public static func defaultValue() async throws -> Self? { nil }
    /// Any value.
    public static func options(matching text: String?) async throws -> [ParameterOption]? { nil }

    /// The text of a single value.
    fileprivate static func text(of value: ParameterValue, _ expected: String) throws -> String {
        guard case .single(let text) = value else {
            throw IntentValueError.malformed(expected: expected)
        }
        return text
    }

    /// A single value read from its text.
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
    /// The text.
    public var parameterValue: ParameterValue { .single(self) }
    /// The text.
    public static func resolved(from value: ParameterValue) throws -> String {
        try text(of: value, "a text")
    }
    /// "Text".
    public static var typeName: LocalizedStringResource { "Text" }
}

extension Int: IntentValue {
    /// The number in decimal.
    public var parameterValue: ParameterValue { .single(String(self)) }
    /// A whole number in decimal.
    public static func resolved(from value: ParameterValue) throws -> Int {
        try parsed(value, "a whole number") { Int($0) }
    }
    /// "Whole number".
    public static var typeName: LocalizedStringResource { "Whole number" }
}

extension Double: IntentValue {
    /// The number in the shortest form that reads back the same; whole ones without a point.
    public var parameterValue: ParameterValue {
        .single(ParameterValue.text(of: .number(self)) ?? description)
    }
    /// A finite number in decimal.
    public static func resolved(from value: ParameterValue) throws -> Double {
        try parsed(value, "a number") { Double($0).flatMap { $0.isFinite ? $0 : nil } }
    }
    /// "Number".
    public static var typeName: LocalizedStringResource { "Number" }
}

extension Bool: IntentValue {
    /// "true" or "false".
    public var parameterValue: ParameterValue { .single(self ? "true" : "false") }
    /// "true" or "false".
    public static func resolved(from value: ParameterValue) throws -> Bool {
        try parsed(value, "true or false") { Bool($0) }
    }
    /// "Yes or no".
    public static var typeName: LocalizedStringResource { "Yes or no" }
    /// Both.
    public static func options(matching text: String?) -> [ParameterOption]? {
        [true, false].map {
            ParameterOption(
                value: $0.parameterValue,
                displayRepresentation: DisplayRepresentation(title: $0 ? "Yes" : "No"))
        }
    }
}

extension Date: IntentValue {
    /// The moment in UTC as RFC 3339 writes it, to the millisecond.
    public var parameterValue: ParameterValue { .single(formatted(Self.style)) }
    /// A moment as RFC 3339 writes it, with or without fractions of a second.
    public static func resolved(from value: ParameterValue) throws -> Date {
        try parsed(value, "a date like 2026-11-21T07:00:00.000Z") {
            (try? Date($0, strategy: style)) ?? (try? Date($0, strategy: .iso8601))
        }
    }
    /// "Date".
    public static var typeName: LocalizedStringResource { "Date" }

    private static var style: Date.ISO8601FormatStyle {
        Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    }
}

extension Optional: IntentValue where Wrapped: IntentValue {
    /// The value's; ``ParameterValue/unset`` for none.
    public var parameterValue: ParameterValue { map(\.parameterValue) ?? .unset }
    /// None for what is unset.
    public static func resolved(from value: ParameterValue) async throws -> Wrapped? {
        if value == .unset { return nil }
        return try await Wrapped.resolved(from: value)
    }
    /// None is a value.
    public static var hasDefault: Bool { true }
    /// None.
    public static func defaultValue() -> Self? { .some(.none) }
    /// The type's.
    public static var typeName: LocalizedStringResource { Wrapped.typeName }
    /// The type's.
    public static func options(matching text: String?) async throws -> [ParameterOption]? {
        try await Wrapped.options(matching: text)
    }
}

extension Array: IntentValue where Element: IntentValue {
    /// The elements' texts.
    public var parameterValue: ParameterValue {
        .list(flatMap { $0.parameterValue.texts })
    }
    /// One element for each text.
    public static func resolved(from value: ParameterValue) async throws -> [Element] {
        guard value != .unset else { throw IntentValueError.malformed(expected: "a list") }
        return try await Element.resolved(fromList: value.texts)
    }
    /// The elements'.
    public static var typeName: LocalizedStringResource { "List of \(Element.typeName.text)" }
    /// The elements'.
    public static func options(matching text: String?) async throws -> [ParameterOption]? {
        try await Element.options(matching: text)
    }
}
