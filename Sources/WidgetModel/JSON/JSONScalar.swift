/// A value that is one value of a JSON tree, without members or elements of its own.
protocol JSONScalar {
    /// Creates the value; `nil` if the JSON value is of another type or out of range.
    init?(json: JSONValue)

    var json: JSONValue { get }

    /// The expected type in words for error messages.
    static var shape: String { get }
}

extension Bool: JSONScalar {
    init?(json: JSONValue) {
        guard case .bool(let flag) = json else { return nil }
        self = flag
    }

    var json: JSONValue { .bool(self) }
    static var shape: String { "a boolean" }
}

extension String: JSONScalar {
    init?(json: JSONValue) {
        guard case .string(let text) = json else { return nil }
        self = text
    }

    var json: JSONValue { .string(self) }
    static var shape: String { "a string" }
}

extension JSONScalar where Self: FixedWidthInteger {
    init?(json: JSONValue) {
        guard case .integer(let number) = json else { return nil }
        self.init(exactly: number)
    }

    var json: JSONValue { .integer(Int64(clamping: self)) }
    static var shape: String { "an integer from \(Self.min) to \(Self.max)" }
}

extension Int: JSONScalar {}
extension Int64: JSONScalar {}
extension UInt32: JSONScalar {}
extension UInt64: JSONScalar {}

extension Double: JSONScalar {
    init?(json: JSONValue) {
        switch json {
        case .integer(let number): self.init(number)
        case .number(let number): self = number
        default: return nil
        }
    }

    var json: JSONValue { isFinite ? .number(self) : .null }
    static var shape: String { "a number" }
}

extension JSONValue: JSONScalar, Codable {
    init(json: JSONValue) { self = json }

    var json: JSONValue { self }
    static var shape: String { "a value" }

    /// Reads a value of the strict JSON tree, which no other decoder reads.
    public init(from decoder: any Decoder) throws {
        throw DecodingError.dataCorrupted(
            .init(
                codingPath: decoder.codingPath,
                debugDescription: "is read by `init(decoding:)` only"))
    }

    /// Writes a value of the strict JSON tree, which no other encoder writes.
    public func encode(to encoder: any Encoder) throws {
        throw EncodingError.invalidValue(
            self,
            .init(
                codingPath: encoder.codingPath,
                debugDescription: "is written by `JSONValue(encoding:)` only"))
    }
}
