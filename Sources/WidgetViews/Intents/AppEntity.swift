import Foundation
import WidgetModel

/// An entity id that can be converted to text and back. A placed widget stores this text.
public protocol EntityIdentifierConvertible: Sendable, Hashable {
    /// The id as text. Different ids have different texts.
    var entityIdentifierString: String { get }
    /// Returns the id with this text; `nil` when there is none.
    static func entityIdentifier(for text: String) -> Self?
}

extension EntityIdentifierConvertible where Self: LosslessStringConvertible {
    /// The id as text.
    public var entityIdentifierString: String { description }
    /// Returns the id that the text states.
    public static func entityIdentifier(for text: String) -> Self? { Self(text) }
}

extension String: EntityIdentifierConvertible {}
extension Int: EntityIdentifierConvertible {}

extension UUID: EntityIdentifierConvertible {
    /// The UUID in upper case.
    public var entityIdentifierString: String { uuidString }
    /// Returns the UUID that the text states in upper or lower case.
    public static func entityIdentifier(for text: String) -> UUID? { UUID(uuidString: text) }
}

/// An object of the app that people can choose, such as a character of a game. A placed widget
/// stores its id; the query finds the entity again (article "Making a configurable widget", "Add a
/// custom app intent to your project").
public protocol AppEntity: IntentValue, Identifiable where ID: EntityIdentifierConvertible {
    /// The type of the query that finds the entities.
    associatedtype DefaultQuery: EntityQuery where DefaultQuery.Entity == Self
    /// The type that declares a property of the entity.
    typealias Property = EntityProperty

    /// The query that finds the entities.
    static var defaultQuery: DefaultQuery { get }
    /// The display name of the type.
    static var typeDisplayRepresentation: TypeDisplayRepresentation { get }
    /// The display name of the entity.
    var displayRepresentation: DisplayRepresentation { get }
}

/// A query that finds the entities of one type (article "Making a configurable widget", "Implement
/// a query to provide dynamic values").
///
/// There is no `EntityPropertyQuery`: the Shortcuts app makes a Find action of it (Apple,
/// EntityPropertyQuery), and no widget asks by properties.
public protocol EntityQuery: Sendable {
    /// The type of the entities.
    associatedtype Entity: AppEntity
    /// The type that ``defaultResult()`` returns; `Never` for a query without a default.
    associatedtype DefaultValue = Never

    /// Returns the entities with these ids, in any order. Includes those that are no longer
    /// suggested, because widgets configured with them still exist; leaves out those that no longer
    /// exist.
    ///
    /// - Throws: The reason why the entities cannot be found now, such as a network failure. The
    ///   timeline that needs them is then not built, and requested again later.
    func entities(for identifiers: [Entity.ID]) async throws -> [Entity]
    /// Returns the entities to choose from.
    ///
    /// - Throws: The reason why they cannot be listed now.
    func suggestedEntities() async throws -> [Entity]
    /// Returns the default for a parameter that no person has set; `nil` when there is none at the
    /// moment. A timeline that needs it is then not built.
    func defaultResult() async -> DefaultValue?
}

extension EntityQuery {
    /// Returns no suggestions.
    public func suggestedEntities() async throws -> [Entity] { [] }
}

extension EntityQuery where DefaultValue == Never {
    /// Returns `nil`: the query has no default.
    public func defaultResult() async -> Never? { nil }
}

/// A query that finds entities by a text that a person types.
public protocol EntityStringQuery: EntityQuery {
    /// Returns the entities that match a text.
    ///
    /// - Throws: The reason why they cannot be found now.
    func entities(matching string: String) async throws -> [Entity]
}

/// A property of an entity that automations may use; written `@Property` in an ``AppEntity``.
@propertyWrapper
public struct EntityProperty<Value: Sendable>: Sendable {
    private var value: Value?

    /// Creates a property without a value.
    public init() {}
    /// Creates a property without a value. No automation here shows its title.
    public init(title: LocalizedStringResource) {}

    /// The value. Reading one that was never set is a programming error.
    public var wrappedValue: Value {
        get {
            guard let value else { preconditionFailure("the property has no value yet") }
            return value
        }
        set { value = newValue }
    }
}

/// A query for a type with few enough entities to list them all.
public protocol EnumerableEntityQuery: EntityQuery {
    /// The type of the entities; declared again to infer it from ``allEntities()``.
    associatedtype Entity

    /// Returns all entities.
    ///
    /// - Throws: The reason why they cannot be listed now.
    func allEntities() async throws -> [Entity]
}

extension EnumerableEntityQuery {
    /// Returns the entities with these ids.
    public func entities(for identifiers: [Entity.ID]) async throws -> [Entity] {
        let wanted = Set(identifiers)
        return try await allEntities().filter { wanted.contains($0.id) }
    }

    /// Returns all entities.
    public func suggestedEntities() async throws -> [Entity] { try await allEntities() }
}

extension AppEntity {
    /// The entity's id as a parameter value.
    public var parameterValue: ParameterValue { .single(id.entityIdentifierString) }

    /// Returns the entity with the stored id.
    ///
    /// - Throws: ``IntentValueError``, also when the entity no longer exists; or the error of the
    ///   query.
    public static func resolved(from value: ParameterValue) async throws -> Self {
        guard case .single(let text) = value else {
            throw IntentValueError.malformed(expected: parameterType.names.expected)
        }
        guard let entity = try await resolved(fromList: [text]).first else {
            throw IntentValueError.entityNotFound(type: typeDisplayRepresentation.name.text)
        }
        return entity
    }

    /// Returns the entities with these ids, found by a single query; leaves out those that no
    /// longer exist.
    ///
    /// - Throws: The error of the query.
    public static func resolved(fromList texts: [String]) async throws -> [Self] {
        let ids = texts.compactMap { ID.entityIdentifier(for: $0) }
        guard !ids.isEmpty else { return [] }
        var found: [ID: Self] = [:]
        for entity in try await defaultQuery.entities(for: ids) { found[entity.id] = entity }
        return ids.compactMap { found[$0] }
    }

    /// Whether the query has a default result.
    public static var hasDefault: Bool { DefaultQuery.DefaultValue.self != Never.self }

    /// Returns the query's default result.
    public static func defaultValue() async -> Self? { await defaultQuery.defaultResult() as? Self }

    /// The type of entities.
    public static var parameterType: ParameterType { .entity("\(Self.self)") }

    /// Returns the suggested entities. With a text, returns the entities that the query finds by
    /// it, or, if the query does not support that, the suggested ones whose names contain it.
    ///
    /// - Throws: The error of the query.
    public static func options(matching text: String?) async throws -> [ParameterOption]? {
        if let text, !text.isEmpty, let query = defaultQuery as? any EntityStringQuery {
            return try await query.entities(matching: text).map { $0.option }
        }
        return try await defaultQuery.suggestedEntities().map(\.option).matching(text)
    }

    var option: ParameterOption {
        ParameterOption(value: parameterValue, displayRepresentation: displayRepresentation)
    }
}
