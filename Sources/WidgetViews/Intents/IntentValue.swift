import Foundation
import WidgetModel

/// A type that an intent's parameter can have: `String`, `Int`, `Double`, `Bool`, `Date`, `URL`, a
/// `Measurement`, an ``AppEnum``, an ``AppEntity``, an array of one of these, or an optional one.
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

    /// The type as an editor and a check know it.
    static var parameterType: ParameterType { get }

    /// Returns the values to choose from; `nil` when any value is valid. With `text`, returns only
    /// values that match it.
    ///
    /// - Throws: The error of a query.
    static func options(matching text: String?) async throws -> [ParameterOption]?
}

/// The type of a parameter, from which an editor makes its field (article "Making a configurable
/// widget", "Add a custom app intent to your project").
public indirect enum ParameterType: Sendable, Hashable {
    /// A text.
    case text
    /// A whole number.
    case wholeNumber
    /// A number.
    case number
    /// `true` or `false`.
    case flag
    /// A date in the form of RFC 3339.
    case date
    /// The address of a resource.
    case url
    /// One of these texts.
    case choice([String])
    /// The id of an entity, with the name of its type.
    case entity(String)
    /// Several values of a type.
    case list(ParameterType)

    /// Returns whether a stored value has the form of this type. An id may still name nothing.
    public func accepts(_ value: ParameterValue) -> Bool {
        switch (self, value) {
        case (.list(let element), _):
            value != .unset && value.texts.allSatisfy { element.accepts(.single($0)) }
        case (.text, .single), (.entity, .single): true
        case (.wholeNumber, .single(let text)): Int(storedText: text) != nil
        case (.number, .single(let text)): Double(storedText: text) != nil
        case (.flag, .single(let text)): Bool(storedText: text) != nil
        case (.date, .single(let text)): Date(storedText: text) != nil
        case (.url, .single(let text)): URL(storedText: text) != nil
        case (.choice(let texts), .single(let text)): texts.contains(text)
        default: false
        }
    }

    /// The name of the type in a catalog, which lets every parameter be unset; and what a valid
    /// value is, for an error.
    var names: (inCatalog: String, expected: String) {
        switch self {
        case .text: ("String", "a text")
        case .wholeNumber: ("Int", "a whole number")
        case .number: ("Double", "a number")
        case .flag: ("Bool", "true or false")
        case .date: ("Date", "a date like 2026-11-21T07:00:00.000Z")
        case .url: ("String", "an address")
        case .choice(let texts): ("AppEnum", "one of \(texts.joined(separator: ", "))")
        case .entity(let name): (name, "an id")
        case .list(let element): ("[\(element.names.inCatalog)]", "a list")
        }
    }
}

/// A value to choose from.
public struct ParameterOption: Sendable, Hashable {
    /// The value to store if it is chosen.
    public let value: ParameterValue
    /// The display name of the value.
    public let displayRepresentation: DisplayRepresentation
}

/// The reason why a stored value is not valid for a parameter's type. Does not include the value,
/// because a person chose it.
public enum IntentValueError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The stored form is malformed.
    case malformed(expected: String)
    /// The query does not find the entity.
    case entityNotFound(type: String)

    /// Whether the entity was deleted, so that asking again gives the same answer.
    package var isOfDeletedEntity: Bool {
        if case .entityNotFound = self { true } else { false }
    }

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

    /// A text, for a type that states no other.
    public static var parameterType: ParameterType { .text }

    /// Returns `false`: no default value.
    public static var hasDefault: Bool { false }
    /// Returns `nil`: no default value.
    public static func defaultValue() async throws -> Self? { nil }
    /// Returns `nil`: any value is valid.
    public static func options(matching text: String?) async throws -> [ParameterOption]? { nil }

    /// Reads a single value from its text.
    static func read(
        _ value: ParameterValue, _ make: (String) -> Self?
    ) throws(IntentValueError) -> Self {
        guard case .single(let text) = value, let result = make(text) else {
            throw .malformed(expected: parameterType.names.expected)
        }
        return result
    }
}

/// A value that is stored as a single text.
protocol TextualValue: IntentValue {
    var storedText: String { get }
    init?(storedText: String)
}

extension TextualValue {
    /// The value as a single text.
    public var parameterValue: ParameterValue { .single(storedText) }
    /// Returns the value that a single text states.
    public static func resolved(from value: ParameterValue) throws -> Self {
        try read(value) { Self(storedText: $0) }
    }
}

extension TextualValue where Self: LosslessStringConvertible {
    var storedText: String { description }
    init?(storedText: String) { self.init(storedText) }
}

extension String: IntentValue, TextualValue {}

extension Int: IntentValue, TextualValue {
    /// A whole number.
    public static var parameterType: ParameterType { .wholeNumber }
}

extension Double: IntentValue, TextualValue {
    // The shortest decimal form that reads back as the same number; integers without a point.
    var storedText: String { ParameterValue.text(of: .number(self)) ?? description }
    init?(storedText: String) {
        guard let number = Double(storedText), number.isFinite else { return nil }
        self = number
    }

    /// A number.
    public static var parameterType: ParameterType { .number }
}

extension Bool: IntentValue, TextualValue {
    /// A flag.
    public static var parameterType: ParameterType { .flag }
    /// Returns both values, or with a text the one whose title contains it.
    public static func options(matching text: String?) -> [ParameterOption]? {
        [true, false].map {
            ParameterOption(
                value: $0.parameterValue,
                displayRepresentation: DisplayRepresentation(title: $0 ? "Yes" : "No"))
        }.matching(text)
    }
}

extension Date: IntentValue, TextualValue {
    // The time in UTC in the form of RFC 3339, to the millisecond; a whole second is read too.
    var storedText: String { formatted(Self.style) }
    init?(storedText: String) {
        guard
            let date = (try? Date(storedText, strategy: Self.style))
                ?? (try? Date(storedText, strategy: .iso8601))
        else { return nil }
        self = date
    }

    /// A date.
    public static var parameterType: ParameterType { .date }

    private static var style: Date.ISO8601FormatStyle {
        Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    }
}

extension URL: IntentValue, TextualValue {
    var storedText: String { absoluteString }
    init?(storedText: String) { self.init(string: storedText) }

    /// An address.
    public static var parameterType: ParameterType { .url }
}

/// A measurement is stored as a number of the base unit of its dimension: a length in meters.
extension Measurement: IntentValue, TextualValue where UnitType: Dimension {
    var storedText: String { converted(to: UnitType.baseUnit()).value.storedText }
    init?(storedText: String) {
        guard let value = Double(storedText: storedText) else { return nil }
        self.init(value: value, unit: UnitType.baseUnit())
    }

    /// A number.
    public static var parameterType: ParameterType { .number }
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
    /// The wrapped type.
    public static var parameterType: ParameterType { Wrapped.parameterType }
    /// Returns the options of the wrapped type.
    public static func options(matching text: String?) async throws -> [ParameterOption]? {
        try await Wrapped.options(matching: text)
    }
}

extension Array: IntentValue where Element: IntentValue {
    /// The texts of the elements.
    public var parameterValue: ParameterValue { .list(flatMap { $0.parameterValue.texts }) }
    /// Returns one element for each text.
    public static func resolved(from value: ParameterValue) async throws -> [Element] {
        guard value != .unset else { throw IntentValueError.malformed(expected: "a list") }
        return try await Element.resolved(fromList: value.texts)
    }
    /// A list of the element type.
    public static var parameterType: ParameterType { .list(Element.parameterType) }
    /// Returns the options of the element type.
    public static func options(matching text: String?) async throws -> [ParameterOption]? {
        try await Element.options(matching: text)
    }
}
