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
    private let literalDefault: Value?
    private var storage: Storage

    /// Creates a parameter with the default of its type.
    public init(title: LocalizedStringResource, description: LocalizedStringResource? = nil) {
        self.title = title
        self.description = description
        literalDefault = nil
        storage = Storage(nil)
    }

    /// Creates a parameter with this default.
    public init(
        title: LocalizedStringResource, description: LocalizedStringResource? = nil,
        default value: Value
    ) {
        self.title = title
        self.description = description
        literalDefault = value
        storage = Storage(value)
    }

    /// The value.
    ///
    /// Reading a value that was never set is a programming error: an intent made with `init()` has
    /// no entities before they are chosen.
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
    var typeName: LocalizedStringResource { get }
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
    /// value.
    func fill(from chosen: ParameterValue?) async throws -> Bool
}

extension IntentParameter: AnyIntentParameter {
    var typeName: LocalizedStringResource { Value.typeName }

    var isOptional: Bool { Value.self is any OptionalValue.Type }

    var hasDefault: Bool { literalDefault != nil || Value.hasDefault }

    var parameterValue: ParameterValue {
        storage.value.withLock { $0 }?.parameterValue ?? .unset
    }

    func defaultValue() async throws -> ParameterValue? {
        try await typedDefault()?.parameterValue
    }

    private func typedDefault() async throws -> Value? {
        if let literalDefault { return literalDefault }
        return try await Value.defaultValue()
    }

    func options(matching text: String?) async throws -> [ParameterOption]? {
        try await Value.options(matching: text)
    }

    func fill(from chosen: ParameterValue?) async throws -> Bool {
        let value: Value?
        if let chosen, chosen != .unset {
            value = try await Value.resolved(from: chosen)
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
