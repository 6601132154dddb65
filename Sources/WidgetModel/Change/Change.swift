/// The urgency of showing a change to people (the terms of Web Push, RFC 8030 section 5.3).
public enum Urgency: String, Sendable, CaseIterable {
    /// The change may wait for the next opportunity.
    case veryLow = "very-low"
    /// The change may wait for a while.
    case low
    /// The default urgency.
    case normal
    /// The change may use reloads reserved from a device's budget.
    case high
}

/// One accepted data change: the `data` of a CloudEvent.
public struct Change: Sendable, Hashable {
    /// The operation on the changed entity.
    public enum Operation: String, Sendable, CaseIterable {
        /// The entity was created.
        case insert
        /// Some properties of the entity changed.
        case update
        /// The entity was deleted.
        case delete
    }

    /// The name of the entity type, as the catalog declares it.
    public var entity: String
    /// The id of the entity; `nil` for a bulk change, which matches every id.
    public var id: String?
    /// The operation on the entity.
    public var operation: Operation
    /// The properties that changed; empty when unknown, which matches every rule.
    public var properties: [String]
    /// Further values that rules can bind to. A missing attribute matches every value; one that
    /// changed contains the old and the new value.
    public var attributes: [String: [String]]
    /// The urgency of the change.
    public var urgency: Urgency

    /// Creates a change.
    public init(
        entity: String, id: String? = nil, operation: Operation = .update,
        properties: [String] = [], attributes: [String: [String]] = [:],
        urgency: Urgency = .normal
    ) {
        self.entity = entity
        self.id = id
        self.operation = operation
        self.properties = properties
        self.attributes = attributes
        self.urgency = urgency
    }

    /// Reads an event's `data`. Ignores unknown members, which belong to the sender.
    ///
    /// - Throws: ``Faults``, each with its path below `place`.
    public init(_ value: JSONValue, at place: String, limits: Limits) throws(Faults) {
        var faults = Faults()
        guard var reader = MemberReader(value, at: place, ignoresUnknown: true, &faults) else {
            throw faults
        }
        let entity = reader.string(
            "entity", required: true, limit: limits.stringBytesMax, &faults)
        let id = reader.value("id").flatMap {
            Self.scalar($0, at: reader.path("id"), limits: limits, &faults)
        }
        let operation = reader.choice("operation", Operation.self, &faults)
        let properties = reader.strings(
            "properties", limit: limits.stringBytesMax, countMax: limits.propertiesMax, &faults)
        let attributes = Self.attributes(&reader, limits: limits, &faults)
        let urgency = reader.choice("urgency", Urgency.self, &faults)
        guard faults.isEmpty, let entity else { throw faults }
        self.init(
            entity: entity, id: id, operation: operation ?? .update, properties: properties,
            attributes: attributes, urgency: urgency ?? .normal)
    }

    private static func scalar(
        _ value: JSONValue, at place: @autoclosure () -> String, limits: Limits,
        _ faults: inout Faults
    ) -> String? {
        guard
            let parameter = ParameterValue(value, at: place(), limits: limits, &faults)
        else { return nil }
        guard case .single(let text) = parameter else {
            faults.add(place(), "must be one value, not \(value.shape)")
            return nil
        }
        return text
    }

    private static func attributes(
        _ reader: inout MemberReader, limits: Limits, _ faults: inout Faults
    ) -> [String: [String]] {
        guard let value = reader.value("attributes") else { return [:] }
        let place = reader.path("attributes")
        if let object = value.objectValue, object["id"] != nil {
            faults.add("\(place).id", "an attribute cannot be called `id`; use the member `id`")
        }
        return readAttributes(value, at: place, limits: limits, &faults)
    }

    /// The change as an event's `data`; members with default values are omitted.
    public var json: JSONValue {
        var object = JSONObject()
        object.reserveCapacity(6)
        object["entity"] = .string(entity)
        if let id { object["id"] = .string(id) }
        if operation != .update { object["operation"] = .string(operation.rawValue) }
        if !properties.isEmpty { object["properties"] = .array(properties.map { .string($0) }) }
        if !attributes.isEmpty { object["attributes"] = attributesJSON(attributes) }
        if urgency != .normal { object["urgency"] = .string(urgency.rawValue) }
        return .object(object)
    }

    /// Appends ``json`` as compact JSON. Every accepted change is written this way, because
    /// building the tree first would cost more than writing it.
    public func append(to bytes: inout [UInt8]) {
        bytes.append(contentsOf: #"{"entity":"#.utf8)
        JSONValue.append(entity, to: &bytes)
        if let id {
            bytes.append(contentsOf: #","id":"#.utf8)
            JSONValue.append(id, to: &bytes)
        }
        if operation != .update {
            bytes.append(contentsOf: #","operation":"#.utf8)
            JSONValue.append(operation.rawValue, to: &bytes)
        }
        if !properties.isEmpty {
            bytes.append(contentsOf: #","properties":["#.utf8)
            for (index, property) in properties.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                JSONValue.append(property, to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        }
        if !attributes.isEmpty {
            bytes.append(contentsOf: #","attributes":"#.utf8)
            attributesJSON(attributes).append(to: &bytes)
        }
        if urgency != .normal {
            bytes.append(contentsOf: #","urgency":"#.utf8)
            JSONValue.append(urgency.rawValue, to: &bytes)
        }
        bytes.append(UInt8(ascii: "}"))
    }
}

/// Reads attributes: an object of scalars or lists of scalars, normalized to lists of texts.
public func readAttributes(
    _ value: JSONValue, at place: String, limits: Limits, _ faults: inout Faults
) -> [String: [String]] {
    var attributes: [String: [String]] = [:]
    for member in MemberReader.members(
        of: value, at: place, countMax: limits.attributesMax, called: "attributes", &faults)
    {
        var memberPlace: String { "\(place).\(member.name.forError)" }
        if let reason = member.name.isUnfit(limit: limits.stringBytesMax) {
            faults.add(memberPlace, "the name \(reason)")
        } else if let texts = ParameterValue(
            member.value, at: memberPlace, limits: limits, &faults)?.texts
        {
            if texts.isEmpty {
                faults.add(
                    memberPlace, "must have a value; omit it if it matches every value")
            } else {
                attributes[member.name] = texts
            }
        }
    }
    return attributes
}

/// Returns attributes as JSON, with sorted names, and single values as scalars.
public func attributesJSON(_ attributes: [String: [String]]) -> JSONValue {
    var object = JSONObject()
    for (name, values) in attributes.sorted(by: { $0.key < $1.key }) {
        object[name] =
            if let only = values.first, values.count == 1 {
                .string(only)
            } else {
                .array(values.map { .string($0) })
            }
    }
    return .object(object)
}
