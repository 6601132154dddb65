import Synchronization
import WidgetModel

/// A parameter of an intent whose value a person chooses; written `@Parameter` in an ``AppIntent``.
///
/// A parameter of a non-optional type without a `default` argument needs a default from the query
/// of its type; this is checked when the widget is declared. Therefore a parameter always has a
/// value when a provider or `perform()` reads it.
@propertyWrapper
public struct IntentParameter<Value: IntentValue>: Sendable {
    /// Holds the value in a reference, so that a parameter found by reflection can be assigned one.
    private final class Storage: Sendable {
        let value: Mutex<Value?>

        init(_ value: Value?) { self.value = Mutex(value) }
    }

    /// The display name of the parameter.
    public let title: LocalizedStringResource
    /// The purpose of the parameter, for display.
    public let description: LocalizedStringResource?
    /// The least and the greatest value; `nil` for none.
    public let range: ClosedRange<Double>?
    private let literalDefault: Value?
    private let provider: (any DynamicOptionsProvider)?
    private var storage: Storage

    /// Creates a parameter.
    ///
    /// - Parameters:
    ///   - value: The default; `nil` for that of the provider or of the type.
    ///   - requestValueDialog: Ignored: nobody asks for values by voice.
    ///   - inclusiveRange: The bounds of a number, the lower first.
    ///   - optionsProvider: Finds the values to choose from, and a default.
    public init(
        title: LocalizedStringResource, description: LocalizedStringResource? = nil,
        default value: Value? = nil, requestValueDialog: IntentDialog? = nil,
        inclusiveRange: (Double, Double)? = nil,
        optionsProvider: (any DynamicOptionsProvider)? = nil
    ) {
        self.title = title
        self.description = description
        range = inclusiveRange.map { min($0.0, $0.1)...max($0.0, $0.1) }
        provider = optionsProvider
        literalDefault = value
        // An optional that was never set is `nil`.
        storage = Storage(value ?? (Any?.none as? Value))
    }

    /// The value.
    ///
    /// Reading a value that was never set is a programming error, unless it is optional: an intent
    /// made with `init()` has no entities before they are chosen.
    public var wrappedValue: Value {
        get {
            guard let value = storage.value.withLock({ $0 }) else {
                preconditionFailure("the intent's parameter \"\(title)\" has no value yet")
            }
            return value
        }
        // Replaces the storage, because copies of an intent must have independent values.
        set { storage = Storage(newValue) }
    }

    /// The parameter itself.
    public var projectedValue: Self { self }
}

/// A parameter of any type, as found by reflection.
protocol AnyIntentParameter: Sendable {
    var title: LocalizedStringResource { get }
    var description: LocalizedStringResource? { get }
    var type: ParameterType { get }
    var range: ClosedRange<Double>? { get }
    var isOptional: Bool { get }
    /// Whether the parameter has a value if no person chooses one.
    var hasDefault: Bool { get }
    /// The value in its stored form; unset if there is none yet.
    var parameterValue: ParameterValue { get }

    /// Returns the value for a person who chose none; `nil` when there is none at the moment.
    func defaultValue() async throws -> ParameterValue?
    /// Returns the values to choose from; `nil` when any value is valid.
    func options(matching text: String?) async throws -> [ParameterOption]?
    /// Assigns the stored value or else the default; returns whether the parameter then has a
    /// value. If `forgetsDeleted`, an optional parameter of a deleted entity becomes `nil`.
    func fill(from chosen: ParameterValue?, forgetsDeleted: Bool) async throws -> Bool
}

extension AnyIntentParameter {
    /// Returns the fault of a number outside of the bounds.
    func rangeFault(of value: ParameterValue) -> IntentValueError? {
        let numbers = value.texts.compactMap { Double($0) }
        guard let range, !numbers.allSatisfy({ range.contains($0) }) else { return nil }
        return .malformed(expected: "from \(range.lowerBound) to \(range.upperBound)")
    }
}

extension IntentParameter: AnyIntentParameter {
    var type: ParameterType { Value.parameterType }

    var isOptional: Bool { Value.self is any OptionalValue.Type }

    var hasDefault: Bool {
        literalDefault != nil || Value.hasDefault || provider?.hasDefault ?? false
    }

    var parameterValue: ParameterValue { storage.value.withLock { $0 }?.parameterValue ?? .unset }

    func defaultValue() async throws -> ParameterValue? { try await typedDefault()?.parameterValue }

    private func typedDefault() async throws -> Value? {
        if let literalDefault { return literalDefault }
        if let value = await provider?.anyDefault() as? Value { return value }
        return try await Value.defaultValue()
    }

    func options(matching text: String?) async throws -> [ParameterOption]? {
        if let provider { return try await provider.options().matching(text) }
        return try await Value.options(matching: text)
    }

    func fill(from chosen: ParameterValue?, forgetsDeleted: Bool) async throws -> Bool {
        let value: Value?
        if let chosen, chosen != .unset {
            if let fault = rangeFault(of: chosen) { throw fault }
            do {
                value = try await Value.resolved(from: chosen)
            } catch let error as IntentValueError
                where error.isOfDeletedEntity && isOptional && forgetsDeleted
            {
                value = try await Value.resolved(from: .unset)
            }
        } else {
            value = try await typedDefault()
        }
        storage.value.withLock { $0 = value }
        return value != nil
    }
}

/// Distinguishes optional types from others.
private protocol OptionalValue {}
extension Optional: OptionalValue {}

/// Finds the values to choose from for a parameter of any type.
public protocol DynamicOptionsProvider: Sendable {
    /// The type of the values.
    associatedtype Value: IntentValue
    /// The type that ``defaultResult()`` returns; `Never` for a provider without a default.
    associatedtype DefaultValue = Never

    /// Returns the values to choose from.
    ///
    /// - Throws: The reason why they cannot be found now.
    func results() async throws -> [Value]
    /// Returns the value for a person who chose none; `nil` when there is none at the moment.
    func defaultResult() async -> DefaultValue?
}

extension DynamicOptionsProvider where DefaultValue == Never {
    /// Returns `nil`: the provider has no default.
    public func defaultResult() async -> Never? { nil }
}

extension DynamicOptionsProvider {
    fileprivate var hasDefault: Bool { DefaultValue.self != Never.self }

    fileprivate func anyDefault() async -> (any IntentValue)? {
        await defaultResult() as? any IntentValue
    }

    fileprivate func options() async throws -> [ParameterOption] {
        try await results().map { value in
            if let entity = value as? any AppEntity { return entity.option }
            if let choice = value as? any AppEnum { return choice.option }
            return ParameterOption(
                value: value.parameterValue,
                displayRepresentation: DisplayRepresentation(
                    title: LocalizedStringResource(
                        value.parameterValue.texts.joined(separator: ", "))))
        }
    }
}
