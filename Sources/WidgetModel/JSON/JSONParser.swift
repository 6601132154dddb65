/// The reason why a text is not JSON, with its position.
public struct JSONFault: Error, Sendable, Equatable, CustomStringConvertible {
    /// The offset of the offending byte from the start of the text.
    public let offset: Int
    /// A description of the fault.
    public let message: String

    /// The position and the message, such as "byte 12: a comma or `]` is expected".
    public var description: String { "byte \(offset): \(message)" }
}

extension JSONValue {
    /// The maximum nesting depth; a peer must not choose the depth of the recursion.
    public static let depthMax = 64

    /// Parses a complete JSON text (RFC 8259).
    ///
    /// Replaces `JSONSerialization`, because a gateway must reject input which that accepts
    /// silently (duplicate member names, lone surrogates, unbounded depth) and must report the
    /// position, and because every accepted change passes through here.
    ///
    /// - Throws: ``JSONFault`` for anything that is not exactly one JSON value in UTF-8.
    public init(parsing text: [UInt8]) throws(JSONFault) {
        let result = text.withUnsafeBufferPointer { bytes -> Result<JSONValue, JSONFault> in
            var parser = JSONParser(bytes: bytes)
            do throws(JSONFault) {
                return .success(try parser.document())
            } catch {
                return .failure(error)
            }
        }
        self = try result.get()
    }

    /// Parses a complete JSON text in a string. See ``init(parsing:)-([UInt8])``.
    ///
    /// - Throws: ``JSONFault`` for anything that is not exactly one JSON value.
    public init(parsing text: String) throws(JSONFault) {
        try self.init(parsing: Array(text.utf8))
    }
}

/// A recursive-descent parser over bytes that outlive it (it exists within one closure).
private struct JSONParser {
    let bytes: UnsafeBufferPointer<UInt8>
    var offset = 0

    mutating func document() throws(JSONFault) -> JSONValue {
        skipWhitespace()
        let value = try value(depth: 0)
        skipWhitespace()
        guard offset == bytes.count else { throw fault("only one value is expected here") }
        return value
    }

    func fault(_ message: String) -> JSONFault {
        JSONFault(offset: offset, message: message)
    }

    static func isDigit(_ byte: UInt8) -> Bool {
        byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")
    }

    var next: UInt8? {
        offset < bytes.count ? bytes[offset] : nil
    }

    mutating func skipWhitespace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 {
            offset += 1
        }
    }

    mutating func value(depth: Int) throws(JSONFault) -> JSONValue {
        guard depth < JSONValue.depthMax else {
            throw fault("nested deeper than \(JSONValue.depthMax) levels")
        }
        switch next {
        case UInt8(ascii: "{"): return try object(depth: depth)
        case UInt8(ascii: "["): return try array(depth: depth)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        case nil: throw fault("the text ends where a value is expected")
        case let byte? where byte == UInt8(ascii: "-") || Self.isDigit(byte): return try number()
        default: throw fault("a value is expected")
        }
    }

    mutating func literal(_ word: StaticString, _ value: JSONValue) throws(JSONFault) -> JSONValue {
        let length = word.utf8CodeUnitCount
        guard bytes.count - offset >= length,
            (0..<length).allSatisfy({ bytes[offset + $0] == word.utf8Start[$0] })
        else { throw fault("\(word) is expected") }
        offset += length
        return value
    }

    mutating func object(depth: Int) throws(JSONFault) -> JSONValue {
        offset += 1
        skipWhitespace()
        if next == UInt8(ascii: "}") {
            offset += 1
            return .object(JSONObject())
        }
        var builder = JSONObjectBuilder()
        while true {
            skipWhitespace()
            guard next == UInt8(ascii: "\"") else { throw fault("a member name is expected") }
            let start = offset
            let name = try string()
            guard builder.begin(name) else {
                throw JSONFault(offset: start, message: "the member name occurs twice")
            }
            skipWhitespace()
            guard next == UInt8(ascii: ":") else { throw fault("a colon is expected") }
            offset += 1
            skipWhitespace()
            builder.add(name, try value(depth: depth + 1))
            skipWhitespace()
            switch next {
            case UInt8(ascii: ","): offset += 1
            case UInt8(ascii: "}"):
                offset += 1
                return .object(builder.object)
            default: throw fault("a comma or `}` is expected")
            }
        }
    }

    mutating func array(depth: Int) throws(JSONFault) -> JSONValue {
        offset += 1
        var elements: [JSONValue] = []
        skipWhitespace()
        if next == UInt8(ascii: "]") {
            offset += 1
            return .array([])
        }
        while true {
            skipWhitespace()
            elements.append(try value(depth: depth + 1))
            skipWhitespace()
            switch next {
            case UInt8(ascii: ","): offset += 1
            case UInt8(ascii: "]"):
                offset += 1
                return .array(elements)
            default: throw fault("a comma or `]` is expected")
            }
        }
    }

    mutating func string() throws(JSONFault) -> String {
        offset += 1
        let start = offset
        var seen: UInt8 = 0
        while let byte = next {
            if byte == UInt8(ascii: "\"") {
                let utf8 = bytes[start..<offset]
                // Nearly all texts are ASCII, and checking for that is much faster than validating
                // UTF-8.
                let text =
                    seen < 0x80
                    ? String(decoding: UnsafeBufferPointer(rebasing: utf8), as: UTF8.self)
                    : try text(utf8, at: start)
                offset += 1
                return text
            }
            if byte == UInt8(ascii: "\\") { return try escapedString(from: start) }
            guard byte >= 0x20 else { throw fault("a control character must be escaped") }
            seen |= byte
            offset += 1
        }
        throw fault("the string does not end")
    }

    /// Reads the rest of a string that has an escape at `offset`.
    mutating func escapedString(from start: Int) throws(JSONFault) -> String {
        var unescaped = Array(bytes[start..<offset])
        while let byte = next {
            switch byte {
            case UInt8(ascii: "\""):
                let result = try unescaped.withUnsafeBufferPointer {
                    buffer throws(JSONFault) -> String in
                    try text(buffer[...], at: start)
                }
                offset += 1
                return result
            case UInt8(ascii: "\\"):
                offset += 1
                try escape(into: &unescaped)
            case 0..<0x20:
                throw fault("a control character must be escaped")
            default:
                unescaped.append(byte)
                offset += 1
            }
        }
        throw fault("the string does not end")
    }

    func text(_ utf8: Slice<UnsafeBufferPointer<UInt8>>, at start: Int) throws(JSONFault) -> String
    {
        guard let text = String(validating: utf8, as: UTF8.self) else {
            throw JSONFault(offset: start, message: "the string is not UTF-8")
        }
        return text
    }

    mutating func escape(into unescaped: inout [UInt8]) throws(JSONFault) {
        guard let kind = next else { throw fault("the string does not end") }
        switch kind {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): unescaped.append(kind)
        case UInt8(ascii: "b"): unescaped.append(0x08)
        case UInt8(ascii: "f"): unescaped.append(0x0C)
        case UInt8(ascii: "n"): unescaped.append(0x0A)
        case UInt8(ascii: "r"): unescaped.append(0x0D)
        case UInt8(ascii: "t"): unescaped.append(0x09)
        case UInt8(ascii: "u"):
            offset += 1
            unescaped.append(contentsOf: try unicodeEscape())
            return
        default: throw fault("no such escape")
        }
        offset += 1
    }

    mutating func unicodeEscape() throws(JSONFault) -> String.UTF8View {
        let first = try hexQuad()
        if let scalar = Unicode.Scalar(first) { return String(scalar).utf8 }
        guard (0xD800..<0xDC00).contains(first), next == UInt8(ascii: "\\") else {
            throw fault("a lone surrogate is not a character")
        }
        offset += 1
        guard next == UInt8(ascii: "u") else { throw fault("a low surrogate is expected") }
        offset += 1
        let second = try hexQuad()
        guard (0xDC00..<0xE000).contains(second),
            let scalar = Unicode.Scalar(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))
        else { throw fault("a low surrogate is expected") }
        return String(scalar).utf8
    }

    mutating func hexQuad() throws(JSONFault) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = next, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
                throw fault("four hexadecimal digits are expected")
            }
            value = value << 4 | UInt32(digit)
            offset += 1
        }
        return value
    }

    mutating func number() throws(JSONFault) -> JSONValue {
        let start = offset
        if next == UInt8(ascii: "-") { offset += 1 }
        if next == UInt8(ascii: "0") {
            offset += 1
        } else {
            try digits()
        }
        var isInteger = true
        if next == UInt8(ascii: ".") {
            isInteger = false
            offset += 1
            try digits()
        }
        if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
            isInteger = false
            offset += 1
            if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { offset += 1 }
            try digits()
        }
        let text = String(decoding: bytes[start..<offset], as: UTF8.self)
        if isInteger, let integer = Int64(text) { return .integer(integer) }
        guard let number = Double(text), number.isFinite else {
            throw JSONFault(offset: start, message: "the number is out of range")
        }
        return .number(number)
    }

    mutating func digits() throws(JSONFault) {
        let start = offset
        while let byte = next, Self.isDigit(byte) { offset += 1 }
        guard offset > start else { throw fault("a digit is expected") }
    }
}
