import Synchronization
import WidgetModel

/// A value of an intent that somebody chooses; written `@Parameter` in an ``AppIntent``.
///
/// Without an argument `default` a parameter whose type is not optional has to get its default from
/// the query of its type; that it has one is checked when the widget is declared. It has a value
/// wherever a provider or `perform()` sees it.
@propertyWrapper
public struct IntentParameter<Value: IntentValue>: Sendable {
    /// Holds the value, so that a parameter found by reflection can be given one.
    private final class Storage: Sendable {
        let value: Mutex<Value?>

        init(_ value: Value?) { self.value = Mutex(value) }
    }

    /// How it is called.
    public let title: LocalizedStringResource
    /// What it is for.
    public let description: LocalizedStringResource?
    private let literalDefault: Value?
    private var storage: Storage

    /// A parameter whose default is that of its type.
    public init(title: LocalizedStringResource, description: LocalizedStringResource? = nil) {
        self.title = title
        self.description = description
        literalDefault = nil
        storage = Storage(nil)
    }

    /// A parameter with a default.
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
    /// Reading one that was never set is a mistake in the program: an intent made with `init()`
    /// has no entities before they were chosen.
    public var wrappedValue: Value {
        get {
            guard let value = storage.value.withLock({ $0 }) else {
                preconditionFailure("the intent's parameter \"\(title)\" has no value yet")
            }
            return value
        }
        // Never the same storage: copies of an intent are values of their own.
        set { storage = Storage(newValue) }
    }

    /// The parameter itself.
    public var projectedValue: Self { self }
}

/// A parameter of any type, as reflection finds it.
protocol AnyIntentParameter: Sendable {
    var title: LocalizedStringResource { get }
    var description: LocalizedStringResource? { get }
    var typeName: LocalizedStringResource { get }
    var isOptional: Bool { get }
    /// Whether it has a value when nobody chooses one.
    var hasDefault: Bool { get }
    /// The value as it is stored; unset before there is one.
    var parameterValue: ParameterValue { get }

    /// The value where nobody chose one; `nil` when there is none at the moment.
    func defaultValue() async throws -> ParameterValue?
    /// What somebody may choose from; `nil` when any value will do.
    func options(matching text: String?) async throws -> [ParameterOption]?
    /// Gives it the stored value, or else the default; answers whether it has one then.
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

/// Tells optional types from others.
private protocol OptionalValue {}
extension Optional: OptionalValue {}
