/// The members of an object whose names are the sender's, in the order in which they were written.
package struct JSONMap<Value> {
    /// The names and values in order.
    package var members: [(name: String, value: Value)]

    /// Creates a map of members with unique names.
    package init(_ members: [(name: String, value: Value)] = []) {
        self.members = members
    }

    /// Creates a map of a dictionary's members, sorted by name.
    package init(sorting values: [String: Value]) {
        members = values.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
}

extension JSONMap: Sendable where Value: Sendable {}

extension JSONMap: Equatable where Value: Equatable {
    /// Returns whether the members are equal and in the same order.
    package static func == (left: Self, right: Self) -> Bool {
        left.members.elementsEqual(right.members, by: ==)
    }
}

private struct MemberName: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

extension JSONMap: Encodable where Value: Encodable {
    /// Writes the members of an object.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: MemberName.self)
        for (name, value) in members {
            try container.encode(value, forKey: MemberName(stringValue: name))
        }
    }
}

extension JSONMap: Decodable where Value: Decodable {
    /// Reads the members of an object.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: MemberName.self)
        members = try container.allKeys.map {
            ($0.stringValue, try container.decode(Value.self, forKey: $0))
        }
    }
}
