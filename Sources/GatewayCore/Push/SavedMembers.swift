import WidgetModel

/// Stored push state that cannot be read: it is damaged, or a newer version wrote it.
package struct UnreadableState: Error, CustomStringConvertible {
    /// The reason, for operators.
    package let description: String
}

/// The members of a stored object of a client's push state.
struct SavedMembers {
    private let object: JSONObject

    init(_ value: JSONValue) throws {
        guard let object = value.objectValue else {
            throw UnreadableState(description: "a pushed client: not an object")
        }
        self.object = object
    }

    /// Returns a member that older versions did not store, or not for every client.
    subscript(_ name: String) -> JSONValue? { object[name] }

    func number(_ name: String) throws -> Int64 { try need(name, \.integerValue) }
    func bits(_ name: String) throws -> UInt64 { UInt64(bitPattern: try number(name)) }
    func flag(_ name: String) throws -> Bool { try need(name, \.boolValue) }
    func text(_ name: String) throws -> String { try need(name, \.stringValue) }
    func list(_ name: String) throws -> [JSONValue] { try need(name, \.arrayValue) }

    private func need<T>(_ name: String, _ read: (JSONValue) -> T?) throws -> T {
        guard let value = object[name].flatMap(read) else {
            throw UnreadableState(description: "a pushed client without `\(name)`")
        }
        return value
    }
}

/// Writes the stored objects of clients' push state as compact JSON, without a tree in between:
/// each push changes it.
struct SavedText {
    private(set) var bytes: [UInt8] = []

    init() {
        bytes.reserveCapacity(1_024)
    }

    /// Writes an object, as a member if it has a name.
    mutating func object(_ name: String? = nil, _ members: (inout Self) -> Void) {
        if let name { begin(name) } else { separate() }
        bytes.append(UInt8(ascii: "{"))
        members(&self)
        bytes.append(UInt8(ascii: "}"))
    }

    /// Writes a member with objects.
    mutating func list<Element>(
        _ name: String, _ elements: some Sequence<Element>,
        _ members: (inout Self, Element) -> Void
    ) {
        begin(name)
        bytes.append(UInt8(ascii: "["))
        for element in elements { object { members(&$0, element) } }
        bytes.append(UInt8(ascii: "]"))
    }

    mutating func number(_ name: String, _ value: Int64) {
        begin(name)
        JSONValue.integer(value).append(to: &bytes)
    }

    /// Writes all 64 bits as a JSON integer, which is signed here.
    mutating func bits(_ name: String, _ value: UInt64) {
        number(name, Int64(bitPattern: value))
    }

    mutating func flag(_ name: String, _ value: Bool) {
        begin(name)
        JSONValue.bool(value).append(to: &bytes)
    }

    mutating func text(_ name: String, _ value: String) {
        begin(name)
        JSONValue.string(value).append(to: &bytes)
    }

    /// Begins a member; no name here needs an escape.
    private mutating func begin(_ name: String) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        bytes.append(contentsOf: name.utf8)
        bytes.append(contentsOf: "\":".utf8)
    }

    /// Separates a member or an element from the one before it.
    private mutating func separate() {
        switch bytes.last {
        case nil, UInt8(ascii: "{"), UInt8(ascii: "["): break
        default: bytes.append(UInt8(ascii: ","))
        }
    }
}
