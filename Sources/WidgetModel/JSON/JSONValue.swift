/// One JSON value (RFC 8259), as a tree.
///
/// Integers stay integers: `sequence` and `seq` are JSON integers on the wire, and a value
/// that went through `Double` could not promise that.
public enum JSONValue: Sendable, Hashable {
    /// The literal `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number without fraction and exponent that fits 64 bits.
    case integer(Int64)
    /// Any other number, finite.
    case number(Double)
    /// A string, already unescaped.
    case string(String)
    /// An array.
    case array([JSONValue])
    /// An object.
    case object(JSONObject)
}

/// The members of a JSON object, in the order in which they were written.
///
/// Names are unique: the parser refuses duplicates, ``subscript(_:)`` replaces. Looking a name up
/// compares it with the others while they are few, and hashes it from ``indexedCountMin`` members on:
/// a sender chooses how many there are and must not make a lookup for each of them quadratic.
public struct JSONObject: Sendable, Hashable {
    /// Name and value of one member.
    public struct Member: Sendable, Hashable {
        /// The member's name.
        public let name: String
        /// The member's value.
        public var value: JSONValue
    }

    /// The members in order.
    public private(set) var members: [Member]
    /// The members' positions by name, from ``indexedCountMin`` members on.
    private var positions: NamePositions?

    /// The number of members from which on their names are hashed.
    static let indexedCountMin = 16

    /// An object without members.
    public init() {
        members = []
    }

    /// An object of members whose names the caller knows to be unique.
    init(uniqueMembers: [Member]) {
        members = uniqueMembers
        if members.count >= Self.indexedCountMin { positions = NamePositions(members) }
    }

    /// An object of members with their positions by name.
    fileprivate init(members: [Member], positions: NamePositions?) {
        self.members = members
        self.positions = positions
    }

    /// Makes room for so many members.
    mutating func reserveCapacity(_ count: Int) {
        members.reserveCapacity(count)
    }

    /// The value called `name`; setting `nil` removes the member, anything else replaces it in
    /// its place or appends it. Removing moves the members behind it; ``removeAll(where:)`` moves
    /// them once for many.
    public subscript(_ name: String) -> JSONValue? {
        get { position(of: name).map { members[$0].value } }
        set {
            switch (position(of: name), newValue) {
            case (let position?, let value?): members[position].value = value
            case (let position?, nil):
                members.remove(at: position)
                positions =
                    members.count >= Self.indexedCountMin ? NamePositions(members) : nil
            case (nil, let value?): append(name, value)
            case (nil, nil): break
            }
        }
    }

    /// Removes the members for which `isUnwanted` is true.
    mutating func removeAll(where isUnwanted: (Member) -> Bool) {
        let count = members.count
        members.removeAll(where: isUnwanted)
        guard members.count < count, positions != nil else { return }
        positions = members.count >= Self.indexedCountMin ? NamePositions(members) : nil
    }

    /// Appends a member with a name that the object lacks.
    private mutating func append(_ name: String, _ value: JSONValue) {
        members.append(Member(name: name, value: value))
        if positions != nil {
            positions?.append(name)
        } else if members.count >= Self.indexedCountMin {
            positions = NamePositions(members)
        }
    }

    /// Whether names are looked up by their hash.
    var isIndexed: Bool { positions != nil }

    private func position(of name: String) -> Int? {
        if let positions { return positions[name] }
        return members.firstIndex { $0.name.hasSameBytes(as: name) }
    }

    /// Objects are equal when their members are, in the same order.
    public static func == (left: Self, right: Self) -> Bool { left.members == right.members }

    /// A function of the members.
    public func hash(into hasher: inout Hasher) { hasher.combine(members) }
}

/// The positions of an object's members by their names' bytes.
private struct NamePositions: Sendable {
    /// A name that equals others by its bytes, not by what Unicode takes for the same text.
    private struct Name: Hashable {
        let text: String

        static func == (left: Self, right: Self) -> Bool { left.text.hasSameBytes(as: right.text) }

        func hash(into hasher: inout Hasher) { text.hashBytes(into: &hasher) }
    }

    private var positions: [Name: Int] = [:]

    init(_ members: [JSONObject.Member]) {
        positions.reserveCapacity(members.count)
        for member in members { append(member.name) }
    }

    subscript(_ name: String) -> Int? { positions[Name(text: name)] }

    /// Notes the name of the next member; returns whether no other has it.
    @discardableResult
    mutating func append(_ name: String) -> Bool {
        let next = positions.count
        return positions.updateValue(next, forKey: Name(text: name)) == nil
    }
}

/// Collects the members of an object and refuses a name that occurs twice.
struct JSONObjectBuilder {
    private var members: [JSONObject.Member] = []
    private var positions: NamePositions?

    init() {
        members.reserveCapacity(8)
    }

    /// Notes the name of the next member; returns `false` for a name that occurs twice, after which the
    /// builder is of no use.
    mutating func begin(_ name: String) -> Bool {
        if positions == nil {
            // A few names are sooner compared than hashed.
            guard members.count >= JSONObject.indexedCountMin else {
                return !members.contains { $0.name.hasSameBytes(as: name) }
            }
            positions = NamePositions(members)
        }
        return positions?.append(name) ?? true
    }

    /// Adds the member whose name was noted last.
    mutating func add(_ name: String, _ value: JSONValue) {
        members.append(JSONObject.Member(name: name, value: value))
    }

    /// The object.
    var object: JSONObject {
        if positions == nil, members.count >= JSONObject.indexedCountMin {
            return JSONObject(uniqueMembers: members)
        }
        return JSONObject(members: members, positions: positions)
    }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
    /// Members in the order written; of two with one name the last wins.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self.init()
        reserveCapacity(elements.count)
        for (name, value) in elements { self[name] = value }
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral,
    ExpressibleByNilLiteral
{
    /// A string value.
    public init(stringLiteral value: String) { self = .string(value) }
    /// An integer value.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// A boolean value.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// An array value.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// The null value.
    public init(nilLiteral: ()) { self = .null }
    /// An object value, members in the order written.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        var object = JSONObject()
        object.reserveCapacity(elements.count)
        for (name, value) in elements { object[name] = value }
        self = .object(object)
    }
}

extension JSONValue {
    /// The string, if this is one.
    public var stringValue: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// The integer, if this is one.
    public var integerValue: Int64? {
        if case .integer(let number) = self { number } else { nil }
    }

    /// The boolean, if this is one.
    public var boolValue: Bool? {
        if case .bool(let flag) = self { flag } else { nil }
    }

    /// The elements, if this is an array.
    public var arrayValue: [JSONValue]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    /// The object, if this is one.
    public var objectValue: JSONObject? {
        if case .object(let object) = self { object } else { nil }
    }

    /// What kind of value this is, in words an error can use: "a string", "an object", …
    public var shape: String {
        switch self {
        case .null: "null"
        case .bool: "a boolean"
        case .integer: "an integer"
        case .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }
}
