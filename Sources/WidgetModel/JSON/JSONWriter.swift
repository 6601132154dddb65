extension JSONValue {
    /// The value as compact JSON in UTF-8, with members in their order.
    public var serialized: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(256)
        append(to: &bytes)
        return bytes
    }

    /// The value as compact JSON text.
    public var text: String {
        String(decoding: serialized, as: UTF8.self)
    }

    /// Appends the value as compact JSON.
    public func append(to bytes: inout [UInt8]) {
        switch self {
        case .null: bytes.append(contentsOf: "null".utf8)
        case .bool(let flag): bytes.append(contentsOf: (flag ? "true" : "false").utf8)
        case .integer(let number): bytes.append(contentsOf: String(number).utf8)
        case .number(let number): bytes.append(contentsOf: number.description.utf8)
        case .string(let text): Self.append(text, to: &bytes)
        case .array(let elements):
            bytes.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                element.append(to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let object):
            bytes.append(UInt8(ascii: "{"))
            for (index, member) in object.members.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                Self.append(member.name, to: &bytes)
                bytes.append(UInt8(ascii: ":"))
                member.value.append(to: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }

    /// Returns the value as JSON text indented for display, two spaces per level.
    public func indented(by depth: Int = 0) -> String {
        let inner = String(repeating: "  ", count: depth + 1)
        let outer = String(repeating: "  ", count: depth)
        switch self {
        case .array(let elements) where !elements.isEmpty:
            let lines = elements.map { inner + $0.indented(by: depth + 1) }
            return "[\n" + lines.joined(separator: ",\n") + "\n" + outer + "]"
        case .object(let object) where !object.members.isEmpty:
            let lines = object.members.map {
                inner + JSONValue.string($0.name).text + ": " + $0.value.indented(by: depth + 1)
            }
            return "{\n" + lines.joined(separator: ",\n") + "\n" + outer + "}"
        default:
            return text
        }
    }

    /// Appends a string as JSON, including its quotation marks.
    static func append(_ text: String, to bytes: inout [UInt8]) {
        var text = text
        bytes.append(UInt8(ascii: "\""))
        // Sound: the pointer is read within the closure that lends it.
        text.withUTF8 { utf8 in
            // Texts rarely need escapes; checking all bytes is faster than stopping at the first.
            var isPlain = true
            for byte in utf8
            where byte < 0x20 || byte == 0x7F || byte == UInt8(ascii: "\"")
                || byte == UInt8(ascii: "\\")
            { isPlain = false }
            if isPlain { bytes.append(contentsOf: utf8) } else { escape(utf8, to: &bytes) }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private static func escape(_ utf8: UnsafeBufferPointer<UInt8>, to bytes: inout [UInt8]) {
        for byte in utf8 {
            switch byte {
            case UInt8(ascii: "\""): bytes.append(contentsOf: #"\""#.utf8)
            case UInt8(ascii: "\\"): bytes.append(contentsOf: #"\\"#.utf8)
            case 0x0A: bytes.append(contentsOf: #"\n"#.utf8)
            case 0x0D: bytes.append(contentsOf: #"\r"#.utf8)
            case 0x09: bytes.append(contentsOf: #"\t"#.utf8)
            case 0..<0x20, 0x7F:
                let hex = String(byte, radix: 16)
                bytes.append(contentsOf: (byte < 0x10 ? #"\u000"# : #"\u00"#).utf8)
                bytes.append(contentsOf: hex.utf8)
            default: bytes.append(byte)
            }
        }
    }
}
