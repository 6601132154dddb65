/// A backend's request to start Live Activities: on clients, or on a broadcast channel.
package struct ActivityStart: Sendable {
    /// The id, by which a repeated request is recognized.
    package let id: String
    /// The type of the activities.
    package let type: String
    /// The attribute that the clients have; `nil` to start none on clients.
    package let attribute: (name: String, value: String)?
    /// The client id of the broadcast channel that the activities listen to; `nil` for none.
    package let channel: String?
    /// The values that stay the same for the whole activity, as the app reads them.
    package let attributes: JSONObject
    package let alert: JSONObject?
    package let urgency: Urgency
    /// The time for which it may be pushed, seconds.
    package let ttl: Int64
    /// The whole request, with the members of each object sorted by name: a backend that repeats it
    /// may write them in another order.
    package let json: JSONValue
    /// The ids of the channel by environment, which the gateway sets.
    package var channels: [String: String] = [:]

    private static let ttlMax: Int64 = 43_200

    /// Reads the body of a request. Throws ``Faults`` with every fault and its path.
    package init(_ value: JSONValue, limits: Limits) throws(Faults) {
        var faults = Faults()
        json = value.sorted
        guard var reader = MemberReader(json, at: "", &faults) else { throw faults }
        func identifier(_ name: String, required: Bool = false) -> String? {
            let text = reader.string(name, required: required, limit: .max, &faults)
            if let text, !Identifier.isValid(text) {
                faults.add(name, "must be 1 to 128 characters of A-Z a-z 0-9 . _ ~ -")
            }
            return text
        }
        func object(_ name: String) -> JSONObject? {
            let value = reader.value(name)
            if let value, value.objectValue == nil {
                faults.add(name, "must be an object, not \(value.shape)")
            }
            return value?.objectValue
        }
        let id = identifier("id", required: true)
        let type = reader.string("type", required: true, limit: limits.stringBytesMax, &faults)
        let named = reader.string("attribute", limit: limits.startBytesMax, &faults)
        let parts = named?.split(separator: ":", maxSplits: 1).map { String($0) } ?? []
        if named != nil, parts.count < 2 { faults.add("attribute", "must be NAME:VALUE") }
        channel = identifier("channel")
        attributes = object("attributes") ?? JSONObject()
        alert = object("alert")
        if reader.value("attribute") != nil {
            if reader.value("alert") == nil { faults.add("alert", "is required with an attribute") }
        } else if reader.value("channel") == nil {
            faults.add("attribute", "is required, or a channel")
        }
        urgency = reader.choice("urgency", Urgency.self, &faults) ?? .normal
        let ttl = reader.value("ttl").map { $0.integerValue ?? 0 } ?? 900
        if !(1...Self.ttlMax).contains(ttl) {
            faults.add("ttl", "must be a number of seconds from 1 to \(Self.ttlMax)")
        }
        reader.refuseUnknown(&faults)
        guard faults.isEmpty, let id, let type else { throw faults }
        (self.id, self.type, self.ttl) = (id, type, ttl)
        attribute = parts.count < 2 ? nil : (name: parts[0], value: parts[1])
    }

    /// Returns whether it starts an activity on a client with these attributes.
    package func concerns(_ attributes: [String: [String]]) -> Bool {
        guard let attribute, let values = attributes[attribute.name] else { return false }
        return values.contains { $0.hasSameBytes(as: attribute.value) }
    }
}

extension JSONValue {
    /// The value with the members of each object sorted by name.
    fileprivate var sorted: JSONValue {
        guard case .object(let object) = self else {
            return arrayValue.map { JSONValue.array($0.map(\.sorted)) } ?? self
        }
        let members = object.members.sorted { $0.name < $1.name }
        return .object(
            JSONObject(uniqueMembers: members.map { .init(name: $0.name, value: $0.value.sorted) }))
    }
}
