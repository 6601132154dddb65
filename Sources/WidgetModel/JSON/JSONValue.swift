/// A JSON value (RFC 8259) as a tree.
///
/// Integers are kept exact: `sequence` and `seq` are JSON integers on the wire, and a conversion to
/// `Double` could lose precision.
public enum JSONValue: Sendable, Hashable {
    /// The literal `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number without fraction and exponent that fits into 64 bits.
    case integer(Int64)
    /// Any other number; finite.
    case number(Double)
    /// A string, already unescaped.
    case string(String)
    case array([JSONValue])
    case object(JSONObject)
}

/// The members of a JSON object in the order in which they were written.
///
/// Names are unique: the parser rejects duplicates, and ``subscript(_:)`` replaces. A lookup
/// compares the names of small objects one by one, and uses a hash table from ``indexedCountMin``
/// members on, so that a sender of a large object cannot make a lookup of each member quadratic.
public struct JSONObject: Sendable, Hashable {
    /// The name and value of one member.
    public struct Member: Sendable, Hashable {
        /// The member's name.
        public let name: String
        /// The member's value.
        public var value: JSONValue

        package init(name: String, value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

    /// The members in order.
    public private(set) var members: [Member]
    /// The positions of members by name, from ``indexedCountMin`` members on.
    private var positions: NamePositions?

    /// The smallest number of members whose names are hashed.
    static let indexedCountMin = 16

    /// Creates an object without members.
    public init() {
        members = []
    }

    /// Creates an object from members whose names are known to be unique.
    package init(uniqueMembers: [Member]) {
        members = uniqueMembers
        if members.count >= Self.indexedCountMin { positions = NamePositions(members) }
    }

    /// Creates an object from members with their positions by name.
    fileprivate init(members: [Member], positions: NamePositions?) {
        self.members = members
        self.positions = positions
    }

    /// Reserves space for this number of members.
    mutating func reserveCapacity(_ count: Int) {
        members.reserveCapacity(count)
    }

    /// The value called `name`. Setting `nil` removes the member; anything else replaces it in
    /// place or appends it. Removing shifts the members behind it; ``removeAll(where:)`` shifts
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

    /// Removes the members that satisfy `isUnwanted`.
    mutating func removeAll(where isUnwanted: (Member) -> Bool) {
        let count = members.count
        members.removeAll(where: isUnwanted)
        guard members.count < count, positions != nil else { return }
        positions = members.count >= Self.indexedCountMin ? NamePositions(members) : nil
    }

    /// Appends a member with a name that the object does not contain.
    private mutating func append(_ name: String, _ value: JSONValue) {
        members.append(Member(name: name, value: value))
        if positions != nil {
            positions?.append(name)
        } else if members.count >= Self.indexedCountMin {
            positions = NamePositions(members)
        }
    }

    /// Whether names are looked up in a hash table.
    var isIndexed: Bool { positions != nil }

    private func position(of name: String) -> Int? {
        if let positions { return positions[name] }
        return members.firstIndex { $0.name.hasSameBytes(as: name) }
    }

    /// Returns whether the members are equal and in the same order.
    public static func == (left: Self, right: Self) -> Bool { left.members == right.members }

    /// Hashes the members.
    public func hash(into hasher: inout Hasher) { hasher.combine(members) }
}

/// The positions of an object's members, by the bytes of their names.
private struct NamePositions: Sendable {
    private var positions: [ExactText: Int] = [:]

    init(_ members: [JSONObject.Member]) {
        positions.reserveCapacity(members.count)
        for member in members { append(member.name) }
    }

    subscript(_ name: String) -> Int? { positions[ExactText(name)] }

    /// Adds the name of the next member. Returns whether it is unique.
    @discardableResult
    mutating func append(_ name: String) -> Bool {
        let next = positions.count
        return positions.updateValue(next, forKey: ExactText(name)) == nil
    }
}

/// Collects the members of an object and detects duplicate names.
struct JSONObjectBuilder {
    private var members: [JSONObject.Member] = []
    private var positions: NamePositions?

    init() {
        members.reserveCapacity(8)
    }

    /// Adds the name of the next member. Returns `false` for a duplicate; the builder must not be
    /// used afterwards.
    mutating func begin(_ name: String) -> Bool {
        if positions == nil {
            // Comparing a few names is faster than hashing them.
            guard members.count >= JSONObject.indexedCountMin else {
                return !members.contains { $0.name.hasSameBytes(as: name) }
            }
            positions = NamePositions(members)
        }
        return positions?.append(name) ?? true
    }

    /// Adds the member with the name added last.
    mutating func add(_ name: String, _ value: JSONValue) {
        members.append(JSONObject.Member(name: name, value: value))
    }

    var object: JSONObject {
        if positions == nil, members.count >= JSONObject.indexedCountMin {
            return JSONObject(uniqueMembers: members)
        }
        return JSONObject(members: members, positions: positions)
    }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
    /// Creates an object with members in the written order. Of two members with the same name the
    /// last wins.
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
    /// Creates a string.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Creates an integer.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// Creates a boolean.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Creates an array.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// Creates null.
    public init(nilLiteral: ()) { self = .null }
    /// Creates an object with members in the written order.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        var object = JSONObject()
        object.reserveCapacity(elements.count)
        for (name, value) in elements { object[name] = value }
        self = .object(object)
    }
}

extension JSONValue {
    /// The string; `nil` for any other value.
    public var stringValue: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// The integer; `nil` for any other value.
    public var integerValue: Int64? {
        if case .integer(let number) = self { number } else { nil }
    }

    /// The number, whether integer or not; `nil` for any other value.
    package var numberValue: Double? { Double(json: self) }

    /// The boolean; `nil` for any other value.
    public var boolValue: Bool? {
        if case .bool(let flag) = self { flag } else { nil }
    }

    /// The elements of an array; `nil` for any other value.
    public var arrayValue: [JSONValue]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    /// The object; `nil` for any other value.
    public var objectValue: JSONObject? {
        if case .object(let object) = self { object } else { nil }
    }

    /// The kind of the value in words for error messages: "a string", "an object", …
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
