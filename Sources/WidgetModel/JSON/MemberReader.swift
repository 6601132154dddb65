/// Reads an object's members by name and type, noting every fault instead of stopping at the
/// first, and remembers which names it was asked for, so that the rest can be reported, unless they
/// are the sender's own.
struct MemberReader {
    let place: String
    let object: JSONObject
    /// `nil` where members nobody asks for are the sender's own.
    private var asked: [String]?

    /// A reader of `value`, which has to be an object; `nil` and a fault when it is not.
    ///
    /// - Parameter ignoresUnknown: Whether members nobody asks for are the sender's own.
    init?(
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

    /// The path of the member called `name`.
    func path(_ name: String) -> String {
        place.isEmpty ? name : place + "." + name
    }

    /// The member's value; `null` counts as absent.
    mutating func value(_ name: String) -> JSONValue? {
        asked?.append(name)
        guard let value = object[name] else { return nil }
        if case .null = value { return nil }
        return value
    }

    mutating func required(_ name: String, _ faults: inout Faults) -> JSONValue? {
        let value = value(name)
        if value == nil { faults.add(path(name), "is required") }
        return value
    }

    mutating func string(
        _ name: String, required isRequired: Bool = false, limit: Int, _ faults: inout Faults
    ) -> String? {
        guard let value = isRequired ? required(name, &faults) : value(name) else { return nil }
        return Self.string(value, at: path(name), limit: limit, &faults)
    }

    /// A non-empty string without control characters of at most `limit` bytes.
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

    /// An array of such strings; a missing member is an empty array.
    mutating func strings(
        _ name: String, limit: Int, countMax: Int, _ faults: inout Faults
    ) -> [String] {
        guard let elements = array(name, countMax: countMax, &faults) else { return [] }
        return elements.enumerated().compactMap { index, element in
            Self.string(element, at: "\(path(name))[\(index)]", limit: limit, &faults)
        }
    }

    /// The elements of an array member, `nil` when it is missing, not an array or too long.
    mutating func array(
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

    /// One of an enumeration's raw values.
    mutating func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ name: String, _ type: Choice.Type, _ faults: inout Faults
    ) -> Choice? {
        guard let value = value(name) else { return nil }
        return Self.choice(value, at: path(name), type, &faults)
    }

    static func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ value: JSONValue, at place: @autoclosure () -> String, _ type: Choice.Type,
        _ faults: inout Faults
    ) -> Choice? {
        if let text = value.stringValue, let choice = Choice(rawValue: text) { return choice }
        let names = Choice.allCases.map(\.rawValue).joined(separator: ", ")
        faults.add(place(), "must be one of \(names)")
        return nil
    }

    /// Members nobody asked for.
    var unknownNames: [String] {
        guard let asked else { return [] }
        return object.members.map(\.name).filter { !asked.contains($0) }
    }

    /// Notes a fault for every member nobody asked for, with the nearest name that is known.
    func refuseUnknown(_ faults: inout Faults) {
        for name in unknownNames {
            faults.add(path(name.forError), "is not known here", hint: name, among: asked ?? [])
        }
    }
}

extension String {
    /// Why this text is not fit to be a name or value, or `nil` when it is.
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

    /// The text cut to a length an error message can carry.
    var forError: String {
        utf8.count <= 64 ? self : String(prefix(40)) + "…"
    }
}
