import Tracing

/// A span that has ended: a value, bounded in size.
package struct SpanRecord: Sendable, Equatable {
    /// A value of an attribute.
    package enum Value: Sendable, Equatable {
        /// Text.
        case text(String)
        /// A whole number.
        case integer(Int64)
        /// Any other number.
        case number(Double)
        /// Yes or no.
        case flag(Bool)
        /// Several texts.
        case texts([String])
    }

    /// What an attribute says.
    package struct Attribute: Sendable, Equatable {
        /// Its name.
        package let name: String
        /// Its value.
        package let value: Value

        /// An attribute.
        package init(name: String, value: Value) {
            self.name = name
            self.value = value
        }
    }

    /// Something that happened while it went on.
    package struct Event: Sendable, Equatable {
        /// What.
        package let name: String
        /// When, in nanoseconds since 1970.
        package let time: UInt64
        /// More of it.
        package let attributes: [Attribute]
    }

    /// How it is called by others.
    package let context: TraceContext
    /// The span it is part of; `nil` where the trace begins.
    package let parent: TraceContext?
    /// What was done.
    package let name: String
    /// Its part in a conversation.
    package let kind: SpanKind
    /// When it began, in nanoseconds since 1970.
    package let start: UInt64
    /// When it ended; never before it began.
    package let end: UInt64
    /// What is known of it, ordered by name.
    package let attributes: [Attribute]
    /// What happened.
    package let events: [Event]
    /// Spans of other traces that it has to do with.
    package let links: [TraceContext]
    /// Whether it is said to have failed, or not; `nil` where nobody said.
    package let failed: Bool?

    /// Most attributes of a span or event.
    package static let attributesMax = 32
    /// Most events and most links of a span.
    package static let eventsMax = 16
    /// The longest text, in bytes: names and values.
    package static let textBytesMax = 256
    /// Most texts of one value.
    package static let textsMax = 32

    /// About how many bytes it is when written down, and never more than so many.
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
    /// Attributes as libraries give them, within bounds and ordered by name.
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
    /// The text without what is beyond so many bytes; no character is cut in two.
    func cut(to bytesMax: Int) -> String {
        guard utf8.count > bytesMax else { return self }
        var end = utf8.index(startIndex, offsetBy: bytesMax)
        while end > startIndex, String.Index(end, within: unicodeScalars) == nil {
            end = utf8.index(before: end)
        }
        return String(self[..<end])
    }
}
