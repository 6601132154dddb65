/// Reads an object's members by name and type. Records every fault instead of stopping at the
/// first, and remembers the requested names, so that unknown members can be reported unless they
/// belong to the sender.
package struct MemberReader {
    let place: String
    let object: JSONObject
    /// The names requested so far; `nil` if unknown members belong to the sender.
    private var asked: [String]?

    /// Creates a reader of an object; returns `nil` and records a fault for any other value.
    /// `ignoresUnknown` says whether unknown members belong to the sender.
    package init?(
        _ value: JSONValue, at place: String, ignoresUnknown: Bool = false, _ faults: inout Faults
    ) {
        guard case .object(let object) = value else {
            faults.add(place, "must be an object, not \(value.shape)")
            return nil
        }
        self.init(object, at: place, ignoresUnknown: ignoresUnknown)
    }

    init(_ object: JSONObject, at place: String, ignoresUnknown: Bool = false) {
        self.place = place
        self.object = object
        if !ignoresUnknown {
            var asked: [String] = []
            asked.reserveCapacity(12)
            self.asked = asked
        }
    }

    /// Returns the path of the member called `name`.
    package func path(_ name: String) -> String {
        place.isEmpty ? name : place + "." + name
    }

    /// Returns the member's value; `nil` if it is missing or `null`.
    package mutating func value(_ name: String) -> JSONValue? {
        asked?.append(name)
        guard let value = object[name] else { return nil }
        if case .null = value { return nil }
        return value
    }

    package mutating func required(_ name: String, _ faults: inout Faults) -> JSONValue? {
        let value = value(name)
        if value == nil { faults.add(path(name), "is required") }
        return value
    }

    package mutating func string(
        _ name: String, required isRequired: Bool = false, limit: Int, _ faults: inout Faults
    ) -> String? {
        guard let value = isRequired ? required(name, &faults) : value(name) else { return nil }
        return Self.string(value, at: path(name), limit: limit, &faults)
    }

    /// Reads a non-empty string without control characters of at most `limit` bytes.
    static func string(
        _ value: JSONValue, at place: @autoclosure () -> String, limit: Int,
        _ faults: inout Faults
    ) -> String? {
        guard case .string(let text) = value else {
            faults.add(place(), "must be a string, not \(value.shape)")
            return nil
        }
        if let reason = text.isUnfit(limit: limit) {
            faults.add(place(), reason)
            return nil
        }
        return text
    }

    /// Reads an array of such strings; a missing member is an empty array.
    package mutating func strings(
        _ name: String, limit: Int, countMax: Int, _ faults: inout Faults
    ) -> [String] {
        guard let elements = array(name, countMax: countMax, &faults) else { return [] }
        return elements.enumerated().compactMap { index, element in
            Self.string(element, at: "\(path(name))[\(index)]", limit: limit, &faults)
        }
    }

    /// Returns the elements of an array member; `nil` when it is missing, not an array or too long.
    package mutating func array(
        _ name: String, countMax: Int, _ faults: inout Faults
    ) -> [JSONValue]? {
        guard let value = value(name) else { return nil }
        guard case .array(let elements) = value else {
            faults.add(path(name), "must be an array, not \(value.shape)")
            return nil
        }
        guard elements.count <= countMax else {
            faults.add(
                path(name), "has \(elements.count) elements; at most \(countMax) are allowed")
            return nil
        }
        return elements
    }

    /// Returns the members of a value that is an object with at most `countMax` of them. A fault
    /// calls them by `name`.
    package static func members(
        of value: JSONValue, at place: @autoclosure () -> String, countMax: Int,
        called name: String = "members", _ faults: inout Faults
    ) -> [JSONObject.Member] {
        guard case .object(let object) = value else {
            faults.add(place(), "must be an object, not \(value.shape)")
            return []
        }
        let count = object.members.count
        guard count <= countMax else {
            faults.add(place(), "has \(count) \(name); at most \(countMax) are allowed")
            return []
        }
        return object.members
    }

    /// Reads a raw value of an enumeration.
    package mutating func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ name: String, _ type: Choice.Type, _ faults: inout Faults
    ) -> Choice? {
        guard let value = value(name) else { return nil }
        return Self.choice(value, at: path(name), type, &faults)
    }

    package static func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ value: JSONValue, at place: @autoclosure () -> String, _ type: Choice.Type,
        _ faults: inout Faults
    ) -> Choice? {
        if let text = value.stringValue, let choice = Choice(rawValue: text) { return choice }
        let names = Choice.allCases.map(\.rawValue).joined(separator: ", ")
        faults.add(place(), "must be one of \(names)")
        return nil
    }

    /// The names of members that were not requested.
    var unknownNames: [String] {
        guard let asked else { return [] }
        return object.members.map(\.name).filter { !asked.contains($0) }
    }

    /// Records a fault for every member that was not requested, suggesting the most similar known
    /// name.
    package func refuseUnknown(_ faults: inout Faults) {
        for name in unknownNames {
            faults.add(path(name.forError), "is unknown", hint: name, among: asked ?? [])
        }
    }
}

extension String {
    /// Returns the reason why this text is not a valid name or value; `nil` when it is valid.
    public func isUnfit(limit: Int) -> String? {
        if isEmpty { return "must not be empty" }
        if utf8.count > limit { return "has \(utf8.count) bytes; at most \(limit) are allowed" }
        var text = self
        // Sound: the pointer is read within the closure that lends it.
        if text.withUTF8({ $0.contains { $0 < 0x20 || $0 == 0x7F } }) {
            return "must not contain control characters"
        }
        return nil
    }

    /// The text, shortened for an error message.
    package var forError: String {
        utf8.count <= 64 ? self : String(prefix(40)) + "…"
    }
}
