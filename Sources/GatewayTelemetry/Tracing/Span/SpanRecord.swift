import Tracing

/// A span that has ended: a value of limited size.
package struct SpanRecord: Sendable, Equatable {
    package enum Value: Sendable, Equatable {
        case text(String)
        case integer(Int64)
        /// Any other number.
        case number(Double)
        case flag(Bool)
        case texts([String])
    }

    /// A named value.
    package struct Attribute: Sendable, Equatable {
        package let name: String
        package let value: Value

        package init(name: String, value: Value) {
            self.name = name
            self.value = value
        }
    }

    package struct Event: Sendable, Equatable {
        package let name: String
        /// The time of the event, nanoseconds since 1970.
        package let time: UInt64
        package let attributes: [Attribute]
    }

    /// The propagated identity of the span.
    package let context: TraceContext
    /// The parent span; `nil` for the first span of a trace.
    package let parent: TraceContext?
    package let name: String
    /// The role in a communication, such as server or client.
    package let kind: SpanKind
    /// The start, nanoseconds since 1970.
    package let start: UInt64
    /// The end, nanoseconds since 1970; never before the start.
    package let end: UInt64
    /// The attributes, sorted by name.
    package let attributes: [Attribute]
    package let events: [Event]
    /// The related spans of other traces.
    package let links: [TraceContext]
    /// Whether the operation failed; `nil` if no status was set.
    package let failed: Bool?

    /// The maximum number of attributes of a span or event.
    package static let attributesMax = 32
    /// The maximum number of events, and of links, of a span.
    package static let eventsMax = 16
    /// The longest text, bytes: names and values.
    package static let textBytesMax = 256
    /// The maximum number of texts in one value.
    package static let textsMax = 32

    /// An upper estimate of the encoded size, bytes.
    package var bytesMax: Int {
        func bytes(_ text: String) -> Int { 6 * text.utf8.count + 8 }
        func bytes(_ attributes: [Attribute]) -> Int {
            attributes.reduce(0) { sum, attribute in
                let value =
                    switch attribute.value {
                    case .text(let text): bytes(text)
                    case .texts(let texts): texts.reduce(0) { $0 + bytes($1) + 24 }
                    case .integer, .number, .flag: 32
                    }
                return sum + bytes(attribute.name) + value + 64
            }
        }
        func bytes(_ context: TraceContext) -> Int { bytes(context.state.text) + 128 }
        return 384 + bytes(name) + bytes(context) + bytes(attributes)
            + events.reduce(0) { $0 + bytes($1.name) + bytes($1.attributes) + 96 }
            + links.reduce(0) { $0 + bytes($1) }
    }
}

extension [SpanRecord.Attribute] {
    /// Converts attributes from a library, within the limits and sorted by name.
    init(_ attributes: SpanAttributes) {
        var all: [SpanRecord.Attribute] = []
        attributes.forEach { name, value in
            guard let value = SpanRecord.Value(value) else { return }
            all.append(.init(name: name.cut(to: SpanRecord.textBytesMax), value: value))
        }
        all.sort { $0.name < $1.name }
        self = Array(all.prefix(SpanRecord.attributesMax))
    }
}

extension SpanRecord.Value {
    init?(_ attribute: SpanAttribute) {
        func cut(_ text: String) -> String { text.cut(to: SpanRecord.textBytesMax) }
        func texts(_ values: [some Any]) -> Self {
            .texts(values.prefix(SpanRecord.textsMax).map { cut("\($0)") })
        }
        switch attribute {
        case .int32(let value): self = .integer(Int64(value))
        case .int64(let value): self = .integer(value)
        case .double(let value): self = .number(value)
        case .bool(let value): self = .flag(value)
        case .string(let value): self = .text(cut(value))
        case .stringConvertible(let value): self = .text(cut("\(value)"))
        case .stringArray(let values): self = texts(values)
        case .int32Array(let values): self = texts(values)
        case .int64Array(let values): self = texts(values)
        case .doubleArray(let values): self = texts(values)
        case .boolArray(let values): self = texts(values)
        case .stringConvertibleArray(let values): self = texts(values)
        default: return nil
        }
    }
}

extension String {
    /// Returns the text truncated to this many bytes, at a character boundary.
    func cut(to bytesMax: Int) -> String {
        guard utf8.count > bytesMax else { return self }
        var end = utf8.index(startIndex, offsetBy: bytesMax)
        while end > startIndex, String.Index(end, within: unicodeScalars) == nil {
            end = utf8.index(before: end)
        }
        return String(self[..<end])
    }
}
