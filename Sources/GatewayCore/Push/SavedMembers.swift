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

extension JSONValue {
    /// Returns all 64 bits as a JSON integer, which is signed here.
    static func bits(_ value: UInt64) -> JSONValue { .integer(Int64(bitPattern: value)) }
}
