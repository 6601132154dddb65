extension Decodable {
    /// Creates a document from a JSON value, and ignores members that the document does not have.
    /// Throws ``Faults`` with the path of a value that is missing or of the wrong type.
    package init(decoding value: JSONValue) throws(Faults) {
        do {
            self = try JSONValueDecoder(value: value, codingPath: []).read(Self.self)
        } catch let faults as Faults {
            throw faults
        } catch let error as DecodingError {
            throw Faults(error)
        } catch {
            throw Faults("", "\(error)")
        }
    }
}

extension Faults {
    /// The fault that a document's own initializer reported.
    fileprivate init(_ error: DecodingError) {
        switch error {
        case .typeMismatch(_, let context), .valueNotFound(_, let context),
            .keyNotFound(_, let context), .dataCorrupted(let context):
            self.init(context.codingPath.jsonPath, context.debugDescription)
        @unknown default: self.init("", "\(error)")
        }
    }
}

extension [any CodingKey] {
    /// The path as faults have it, such as `widgets[0].kind`.
    fileprivate var jsonPath: String {
        reduce(into: "") { path, key in
            if let index = key.intValue {
                path += "[\(index)]"
            } else {
                path += path.isEmpty ? key.stringValue : "." + key.stringValue
            }
        }
    }
}

private struct JSONIndex: CodingKey {
    let intValue: Int?
    var stringValue: String { "\(intValue ?? 0)" }

    init(intValue: Int) { self.intValue = intValue }
    init?(stringValue: String) { nil }
}

private struct JSONValueDecoder: Decoder, SingleValueDecodingContainer {
    let value: JSONValue
    let codingPath: [any CodingKey]
    let userInfo: [CodingUserInfoKey: Any] = [:]

    func read<Value: Decodable>(_ type: Value.Type) throws -> Value {
        guard let scalar = type as? any JSONScalar.Type else { return try type.init(from: self) }
        guard let value = scalar.init(json: value) as? Value else {
            throw fault("must be \(scalar.shape), not \(value.shape)")
        }
        return value
    }

    func fault(_ message: String) -> Faults { Faults(codingPath.jsonPath, message) }

    func below(_ key: any CodingKey, _ value: JSONValue) -> Self {
        Self(value: value, codingPath: codingPath + [key])
    }

    func members<Key: CodingKey>(_: Key.Type) throws -> JSONMembersDecoder<Key> {
        guard case .object(let object) = value else {
            throw fault("must be an object, not \(value.shape)")
        }
        return JSONMembersDecoder(decoder: self, object: object)
    }

    func elements() throws -> JSONElementsDecoder {
        guard case .array(let elements) = value else {
            throw fault("must be an array, not \(value.shape)")
        }
        return JSONElementsDecoder(decoder: self, elements: elements)
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(try members(type))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { try elements() }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool { value == .null }

    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try read(type) }
}

private struct JSONMembersDecoder<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let decoder: JSONValueDecoder
    let object: JSONObject

    var codingPath: [any CodingKey] { decoder.codingPath }
    var allKeys: [Key] { object.members.compactMap { Key(stringValue: $0.name) } }

    func contains(_ key: Key) -> Bool { object[key.stringValue] != nil }

    private func member(_ key: Key) throws -> JSONValueDecoder {
        guard let value = object[key.stringValue] else {
            throw decoder.below(key, .null).fault("is required")
        }
        return decoder.below(key, value)
    }

    func decodeNil(forKey key: Key) throws -> Bool { try member(key).decodeNil() }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try member(key).read(type)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        try member(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try member(key).elements()
    }

    func superDecoder() throws -> any Decoder { decoder }

    func superDecoder(forKey key: Key) throws -> any Decoder { try member(key) }
}

private struct JSONElementsDecoder: UnkeyedDecodingContainer {
    let decoder: JSONValueDecoder
    let elements: [JSONValue]
    private(set) var currentIndex = 0

    var codingPath: [any CodingKey] { decoder.codingPath }
    var count: Int? { elements.count }
    var isAtEnd: Bool { currentIndex == elements.count }

    private mutating func next() throws -> JSONValueDecoder {
        let index = JSONIndex(intValue: currentIndex)
        guard !isAtEnd else { throw decoder.below(index, .null).fault("is required") }
        defer { currentIndex += 1 }
        return decoder.below(index, elements[currentIndex])
    }

    mutating func decodeNil() throws -> Bool {
        guard !isAtEnd, elements[currentIndex] == .null else { return false }
        currentIndex += 1
        return true
    }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try next().read(type)
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> {
        try next().container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try next().elements()
    }

    mutating func superDecoder() throws -> any Decoder { try next() }
}
