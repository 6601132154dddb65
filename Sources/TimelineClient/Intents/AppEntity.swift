import Foundation
import WidgetModel

/// An id that can be written as text and read back: what a placed widget stores of an entity.
public protocol EntityIdentifierConvertible: Sendable, Hashable {
    /// The id as text; two ids never share one.
    var entityIdentifierString: String { get }
    /// The id that is written so; `nil` when none is.
    static func entityIdentifier(for text: String) -> Self?
}

extension String: EntityIdentifierConvertible {
    /// The text.
    public var entityIdentifierString: String { self }
    /// The text.
    public static func entityIdentifier(for text: String) -> String? { text }
}

extension Int: EntityIdentifierConvertible {
    /// The number in decimal.
    public var entityIdentifierString: String { String(self) }
    /// A number in decimal.
    public static func entityIdentifier(for text: String) -> Int? { Int(text) }
}

extension UUID: EntityIdentifierConvertible {
    /// In capital letters.
    public var entityIdentifierString: String { uuidString }
    /// In letters of either case.
    public static func entityIdentifier(for text: String) -> UUID? { UUID(uuidString: text) }
}

/// One of the app's own things that somebody may choose, such as a character of a game. A placed
/// widget stores its id; the query finds it again (article "Making a configurable widget", "Add a
/// custom app intent to your project").
public protocol AppEntity: IntentValue, Identifiable where ID: EntityIdentifierConvertible {
    /// How it is found.
    associatedtype DefaultQuery: EntityQuery where DefaultQuery.Entity == Self

    /// How it is found.
    static var defaultQuery: DefaultQuery { get }
    /// How the type is called.
    static var typeDisplayRepresentation: TypeDisplayRepresentation { get }
    /// How it is shown.
    var displayRepresentation: DisplayRepresentation { get }
}

/// Finds the entities of one type (article "Making a configurable widget", "Implement a query to
/// provide dynamic values").
public protocol EntityQuery: Sendable {
    /// What it finds.
    associatedtype Entity: AppEntity
    /// What ``defaultResult()`` answers; `Never` for a query without one.
    associatedtype DefaultValue = Never

    /// The entities with these ids, in any order. Also those that are suggested no more: widgets
    /// that were configured with them go on. Those that are gone are left out.
    ///
    /// - Throws: Why they cannot be looked for now, such as a network that is down: the timeline that
    ///   needs them is not built, and asked for again later.
    func entities(for identifiers: [Entity.ID]) async throws -> [Entity]
    /// What somebody may choose from.
    ///
    /// - Throws: Why it cannot be said now.
    func suggestedEntities() async throws -> [Entity]
    /// What is chosen where nobody has chosen anything; `nil` when there is nothing at the moment, and
    /// then a timeline that needs it is not built.
    func defaultResult() async -> DefaultValue?
}

extension EntityQuery {
    /// Nothing is suggested.
    public func suggestedEntities() async throws -> [Entity] { [] }
}

extension EntityQuery where DefaultValue == Never {
    /// There is none.
    public func defaultResult() async -> Never? { nil }
}

/// A query that finds entities by what somebody has typed.
public protocol EntityStringQuery: EntityQuery {
    /// The entities that match a text.
    ///
    /// - Throws: Why they cannot be looked for now.
    func entities(matching string: String) async throws -> [Entity]
}

/// A query over so few entities that all of them can be listed.
public protocol EnumerableEntityQuery: EntityQuery {
    /// What it finds; declared again, so that it follows from what ``allEntities()`` returns.
    associatedtype Entity

    /// All of them.
    ///
    /// - Throws: Why they cannot be listed now.
    func allEntities() async throws -> [Entity]
}

extension EnumerableEntityQuery {
    /// Those of all with the ids.
    public func entities(for identifiers: [Entity.ID]) async throws -> [Entity] {
        let wanted = Set(identifiers)
        return try await allEntities().filter { wanted.contains($0.id) }
    }

    /// All of them.
    public func suggestedEntities() async throws -> [Entity] { try await allEntities() }
}

extension AppEntity {
    /// The entity's id.
    public var parameterValue: ParameterValue { .single(id.entityIdentifierString) }

    /// The entity with the id.
    ///
    /// - Throws: ``IntentValueError``, also when there is no such entity any more; what the query
    ///   throws.
    public static func resolved(from value: ParameterValue) async throws -> Self {
        guard case .single(let text) = value else {
            throw IntentValueError.malformed(expected: "an id")
        }
        guard let entity = try await resolved(fromList: [text]).first else {
            throw IntentValueError.entityNotFound(type: typeDisplayRepresentation.name.text)
        }
        return entity
    }

    /// The entities with these ids, asked for at once; those that are gone are left out.
    ///
    /// - Throws: What the query throws.
    public static func resolved(fromList texts: [String]) async throws -> [Self] {
        let ids = texts.compactMap { ID.entityIdentifier(for: $0) }
        guard !ids.isEmpty else { return [] }
        var found: [ID: Self] = [:]
        for entity in try await defaultQuery.entities(for: ids) { found[entity.id] = entity }
        return ids.compactMap { found[$0] }
    }

    /// Whether the query has a default result.
    public static var hasDefault: Bool { DefaultQuery.DefaultValue.self != Never.self }

    /// The query's default result.
    public static func defaultValue() async -> Self? {
        await defaultQuery.defaultResult() as? Self
    }

    /// The type's display name.
    public static var typeName: LocalizedStringResource { typeDisplayRepresentation.name }

    /// What the query suggests; with a text, what it finds by it, or else those of the suggested
    /// whose names have it.
    ///
    /// - Throws: What the query throws.
    public static func options(matching text: String?) async throws -> [ParameterOption]? {
        if let text, !text.isEmpty, let query = defaultQuery as? any EntityStringQuery {
            return try await query.options(matching: text)
        }
        return try await defaultQuery.suggestedEntities().map(\.option).matching(text)
    }

    fileprivate var option: ParameterOption {
        ParameterOption(value: parameterValue, displayRepresentation: displayRepresentation)
    }
}

extension EntityStringQuery {
    fileprivate func options(matching text: String) async throws -> [ParameterOption] {
        try await entities(matching: text).map(\.option)
    }
}
