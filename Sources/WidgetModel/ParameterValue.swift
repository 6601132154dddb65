/// The value of an intent parameter or attribute, reduced to the form that dependency rules
/// compare: the UTF-8 bytes of its text.
public enum ParameterValue: Sendable, Hashable {
    /// No value is chosen; matches every value.
    case unset
    /// A single value.
    case single(String)
    /// Several values (an array parameter); matches each of them.
    case list([String])

    /// Compares the bytes of the texts. Unicode-equivalent texts with different bytes are different
    /// values.
    public static func == (left: Self, right: Self) -> Bool {
        switch (left, right) {
        case (.unset, .unset): true
        case (.single(let left), .single(let right)): left.hasSameBytes(as: right)
        case (.list(let left), .list(let right)):
            left.elementsEqual(right) { $0.hasSameBytes(as: $1) }
        default: false
        }
    }

    /// Hashes the bytes of the texts.
    public func hash(into hasher: inout Hasher) {
        switch self {
        case .unset: hasher.combine(0)
        case .single: hasher.combine(1)
        case .list: hasher.combine(2)
        }
        for text in texts { text.hashBytes(into: &hasher) }
    }

    /// The texts that a rule compares; empty for ``unset``.
    public var texts: [String] {
        switch self {
        case .unset: []
        case .single(let text): [text]
        case .list(let texts): texts
        }
    }

    /// Returns the text of a scalar: integers in decimal, `true` or `false`, strings unchanged;
    /// other numbers in the shortest form that reads back as the same number, whole ones as
    /// integers. Returns `nil` for any other value.
    public static func text(of value: JSONValue) -> String? {
        switch value {
        case .string(let text): text
        case .integer(let number): String(number)
        case .bool(let flag): flag ? "true" : "false"
        case .number(let number): Int64(exactly: number).map(String.init) ?? number.description
        case .null, .array, .object: nil
        }
    }

    /// Reads a scalar, an array of scalars or `null`.
    ///
    /// - Returns: `nil`, with a fault at `place`, for anything else.
    public init?(
        _ value: JSONValue, at place: @autoclosure () -> String, limits: Limits,
        _ faults: inout Faults
    ) {
        switch value {
        case .null:
            self = .unset
        case .array(let elements):
            guard elements.count <= limits.listValuesMax else {
                faults.add(
                    place(),
                    "has \(elements.count) values; at most \(limits.listValuesMax) are allowed")
                return nil
            }
            var texts: [String] = []
            for (index, element) in elements.enumerated() {
                guard
                    let text = Self.checkedText(
                        of: element, at: "\(place())[\(index)]", limits: limits, &faults)
                else { return nil }
                if !texts.contains(where: text.hasSameBytes) { texts.append(text) }
            }
            self = .list(texts)
        default:
            guard let text = Self.checkedText(of: value, at: place(), limits: limits, &faults)
            else {
                return nil
            }
            self = .single(text)
        }
    }

    private static func checkedText(
        of value: JSONValue, at place: @autoclosure () -> String, limits: Limits,
        _ faults: inout Faults
    ) -> String? {
        guard let text = text(of: value) else {
            faults.add(place(), "must be a string, number or boolean, not \(value.shape)")
            return nil
        }
        guard !text.utf8.contains(0) else {
            faults.add(place(), "must not contain NUL characters")
            return nil
        }
        guard text.utf8.count <= limits.stringBytesMax else {
            faults.add(
                place(),
                "has \(text.utf8.count) bytes; at most \(limits.stringBytesMax) are allowed")
            return nil
        }
        return text
    }

    /// The value as JSON.
    public var json: JSONValue {
        switch self {
        case .unset: .null
        case .single(let text): .string(text)
        case .list(let texts): .array(texts.map { .string($0) })
        }
    }
}

extension JSONObject {
    /// The attributes of a Live Activity in the form in which a client registers them: as many as
    /// the gateway accepts, of those that rules can compare.
    package var comparable: [String: ParameterValue] {
        let limits = Limits()
        var values: [String: ParameterValue] = [:]
        for member in members.prefix(limits.attributesMax)
        where member.name.isUnfit(limit: limits.stringBytesMax) == nil {
            var faults = Faults()
            values[member.name] = ParameterValue(
                member.value, at: member.name, limits: limits, &faults)
        }
        return values
    }
}

extension String {
    /// Returns whether two texts have the same bytes. `==` also equates Unicode-equivalent texts,
    /// which rules must not do.
    @inline(__always)
    package func hasSameBytes(as other: String) -> Bool {
        utf8.count == other.utf8.count && hasSameBytes(asLong: other)
    }

    /// Compares with a text of the same length.
    private func hasSameBytes(asLong other: String) -> Bool {
        // Sound: the pointers are read within the closures that lend them.
        let isSame = utf8.withContiguousStorageIfAvailable { own in
            other.utf8.withContiguousStorageIfAvailable { other in
                for index in 0..<min(own.count, other.count) where own[index] != other[index] {
                    return false
                }
                return true
            }
        }
        return isSame.flatMap { $0 } ?? utf8.elementsEqual(other.utf8)
    }

    /// Hashes the bytes that ``hasSameBytes(as:)`` compares.
    package func hashBytes(into hasher: inout Hasher) {
        var text = self
        // Sound: the pointer is read within the closure that lends it.
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(0xFF as UInt8)
    }
}
