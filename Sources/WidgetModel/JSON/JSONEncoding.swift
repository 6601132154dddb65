extension JSONValue {
    /// Creates the value that an encodable document stands for. Members are in the order in which
    /// they are encoded, and an optional that is `nil` is left out.
    package init(encoding document: some Encodable) throws {
        let node = JSONNode()
        try node.write(document)
        self = node.json
    }
}

/// A value under construction, to which containers of an encoder add.
private final class JSONNode {
    private enum Kind {
        case value(JSONValue)
        case array
        case object
    }

    private var kind = Kind.object
    /// The elements of an array, or the members of an object.
    private var children: [(name: String, node: JSONNode)] = []

    var json: JSONValue {
        switch kind {
        case .value(let value): return value
        case .array: return .array(children.map(\.node.json))
        case .object:
            var object = JSONObject()
            object.reserveCapacity(children.count)
            for (name, node) in children { object[name] = node.json }
            return .object(object)
        }
    }

    var count: Int { children.count }

    func write(_ document: some Encodable) throws {
        if let scalar = document as? any JSONScalar {
            kind = .value(scalar.json)
        } else {
            try document.encode(to: JSONNodeEncoder(node: self))
        }
    }

    func setNull() { kind = .value(.null) }

    func setArray() { kind = .array }

    /// Adds a member to an object, or an element to an array, which has no name.
    func add(_ name: String = "") -> JSONNode {
        let node = JSONNode()
        children.append((name, node))
        return node
    }
}

private struct JSONNodeEncoder: Encoder, SingleValueEncodingContainer {
    let node: JSONNode
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(JSONMembersEncoder(node: node))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        node.setArray()
        return JSONElementsEncoder(node: node)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    func encodeNil() { node.setNull() }

    func encode<Value: Encodable>(_ value: Value) throws { try node.write(value) }
}

private struct JSONMembersEncoder<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let node: JSONNode
    let codingPath: [any CodingKey] = []

    func encodeNil(forKey key: Key) { node.add(key.stringValue).setNull() }

    func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
        try node.add(key.stringValue).write(value)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        JSONNodeEncoder(node: node.add(key.stringValue)).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        JSONNodeEncoder(node: node.add(key.stringValue)).unkeyedContainer()
    }

    func superEncoder() -> any Encoder { JSONNodeEncoder(node: node.add("super")) }

    func superEncoder(forKey key: Key) -> any Encoder {
        JSONNodeEncoder(node: node.add(key.stringValue))
    }
}

private struct JSONElementsEncoder: UnkeyedEncodingContainer {
    let node: JSONNode
    let codingPath: [any CodingKey] = []
    var count: Int { node.count }

    func encodeNil() { node.add().setNull() }

    func encode<Value: Encodable>(_ value: Value) throws { try node.add().write(value) }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) -> KeyedEncodingContainer<Nested> {
        JSONNodeEncoder(node: node.add()).container(keyedBy: type)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        JSONNodeEncoder(node: node.add()).unkeyedContainer()
    }

    func superEncoder() -> any Encoder { JSONNodeEncoder(node: node.add()) }
}
