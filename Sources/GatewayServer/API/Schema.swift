import WidgetModel

/// What a JSON value looks like: a JSON Schema of the draft 2020-12, which is the dialect of OpenAPI
/// 3.1, together with the named schemas that it refers to.
struct Schema: Sendable {
    /// The keywords.
    private(set) var keywords: JSONObject
    /// The named schemas that it refers to, also by way of others.
    private(set) var named: [String: JSONValue] = [:]
    /// An object may be without a member that has it.
    private(set) var isOptional = false

    /// The schema as it stands in a document.
    var json: JSONValue { .object(keywords) }

    private init(_ keywords: JSONObject, _ parts: [Schema] = []) {
        self.keywords = keywords
        for part in parts { Self.add(part.named, to: &named) }
    }

    /// Adds schemas by name, of which a document has one each.
    static func add(_ more: [String: JSONValue], to named: inout [String: JSONValue]) {
        named.merge(more) { first, second in
            assert(first == second, "two schemas have one name")
            return first
        }
    }

    // MARK: Scalars

    /// Any value.
    static let anything = Schema([:])
    /// A string.
    static let text = Schema(["type": "string"])
    /// A moment as RFC 3339 has it.
    static let moment = Schema(["type": "string", "format": "date-time"])
    /// `true` or `false`.
    static let flag = Schema(["type": "boolean"])
    /// A number, with or without a fraction.
    static let number = Schema(["type": "number"])
    /// What an attribute or a parameter may be: rules compare its text.
    static let scalar = Schema(["type": ["string", "number", "boolean"]])
    /// A whole number that is not negative.
    static let count = integer(0...)

    /// A string that is not empty.
    ///
    /// - Parameter bytesMax: Its UTF-8; a schema counts characters, of which there are no more.
    static func name(_ bytesMax: Int) -> Schema {
        Schema(["type": "string", "minLength": 1, "maxLength": .integer(Int64(bytesMax))])
    }

    /// A string that a regular expression (ECMA-262) finds itself in.
    static func text(matching pattern: String) -> Schema {
        Schema(["type": "string", "pattern": .string(pattern)])
    }

    /// One of these strings.
    static func word(_ words: [String]) -> Schema {
        words.count == 1
            ? Schema(["const": .string(words[0])])
            : Schema(["type": "string", "enum": .array(words.map { .string($0) })])
    }

    /// One of an enumeration's raw values.
    static func word<Word: RawRepresentable<String> & CaseIterable>(_ type: Word.Type) -> Schema {
        word(Word.allCases.map(\.rawValue))
    }

    /// A string that is none of these.
    static func text(otherThan words: [String]) -> Schema {
        Schema(["type": "string", "not": word(words).json])
    }

    /// `true`, and no other value.
    static let yes = Schema(["const": true])

    /// A whole number within bounds.
    static func integer(_ range: PartialRangeFrom<Int64>) -> Schema {
        Schema(["type": "integer", "format": "int64", "minimum": .integer(range.lowerBound)])
    }

    /// A whole number within bounds.
    static func integer(_ range: ClosedRange<Int64>) -> Schema {
        var schema = integer(range.lowerBound...)
        schema.keywords["maximum"] = .integer(range.upperBound)
        return schema
    }

    // MARK: Compositions

    /// An array.
    ///
    /// - Parameter countMax: Most elements; `nil` where none is promised.
    static func list(_ element: Schema, countMax: Int? = nil) -> Schema {
        var schema = Schema(["type": "array", "items": element.json], [element])
        if let countMax { schema.keywords["maxItems"] = .integer(Int64(countMax)) }
        return schema
    }

    /// An object whose members have names of the sender's choice, or some of these.
    ///
    /// - Parameter countMax: Most members; `nil` where none is promised.
    static func map(_ value: Schema, names: [String]? = nil, countMax: Int? = nil) -> Schema {
        var schema = Schema(["type": "object", "additionalProperties": value.json], [value])
        if let names { schema.keywords["propertyNames"] = word(names).json }
        if let countMax { schema.keywords["maxProperties"] = .integer(Int64(countMax)) }
        return schema
    }

    /// An object as the gateway writes it: with these members and no others.
    static func answer(_ members: Members) -> Schema {
        object(members, isClosed: true)
    }

    /// An object as the gateway reads it, where an optional member that is `null` counts as absent.
    ///
    /// - Parameter isClosed: Whether a member of another name is a fault.
    static func request(_ members: Members, isClosed: Bool = false) -> Schema {
        var nullable = members
        nullable.all = members.all.map {
            ($0.name, $0.schema.isOptional ? $0.schema.orNull : $0.schema)
        }
        return object(nullable, isClosed: isClosed)
    }

    private static func object(_ members: Members, isClosed: Bool) -> Schema {
        var properties = JSONObject()
        for (name, schema) in members.all { properties[name] = schema.json }
        let required = members.all.filter { !$0.schema.isOptional }.map(\.name)
        var schema = Schema(
            ["type": "object", "properties": .object(properties)], members.all.map(\.schema))
        if !required.isEmpty {
            schema.keywords["required"] = .array(required.map { .string($0) })
        }
        if isClosed { schema.keywords["additionalProperties"] = false }
        return schema
    }

    /// A value of at least one of these.
    static func any(_ schemas: [Schema]) -> Schema {
        Schema(["anyOf": .array(schemas.map(\.json))], schemas)
    }

    /// A JWT whose claims are such an object: `contentSchema` as the standard's own example has it
    /// (JSON Schema Validation, section 8.6).
    static func token(claims: Schema) -> Schema {
        Schema(
            [
                "type": "string", "contentMediaType": "application/jwt",
                "contentSchema": [
                    "type": "array", "minItems": 2,
                    "prefixItems": [["type": "object"], claims.json],
                ],
            ], [claims])
    }

    // MARK: Variations

    /// The same, or `null`.
    var orNull: Schema {
        var schema = self
        if let type = keywords["type"], keywords["enum"] == nil {
            schema.keywords["type"] = .array((type.arrayValue ?? [type]) + ["null"])
        } else if !keywords.members.isEmpty {
            schema = Schema.any([self, Schema(["type": "null"])])
        }
        schema.isOptional = isOptional
        return schema
    }

    /// The same as a member that may be missing.
    var optional: Schema {
        var schema = self
        schema.isOptional = true
        return schema
    }

    /// The same with a sentence for people.
    func saying(_ description: String) -> Schema {
        var schema = self
        schema.keywords["description"] = .string(description)
        return schema
    }

    /// The same by a name, under which it stands once in the document.
    func named(_ name: String) -> Schema {
        var reference = Schema(["$ref": .string("#/components/schemas/" + name)], [self])
        reference.named[name] = json
        reference.isOptional = isOptional
        return reference
    }

    /// The members of an object, in order.
    struct Members: Sendable, ExpressibleByDictionaryLiteral {
        fileprivate var all: [(name: String, schema: Schema)]

        init(dictionaryLiteral members: (String, Schema)...) {
            all = members.map { ($0.0, $0.1) }
        }

        private init(all: [(name: String, schema: Schema)]) {
            self.all = all
        }

        /// The members of both.
        static func + (left: Self, right: Self) -> Self { Self(all: left.all + right.all) }
    }
}
