/// A CloudEvents 1.0 event that announces a change.
public struct CloudEvent: Sendable, Hashable {
    /// The name of the producer; together with ``id`` it identifies the event.
    public var source: String
    /// The event's id, unique for each source.
    public var id: String
    /// The time of the event in the form of RFC 3339, as the producer wrote it.
    public var time: String?
    /// The change that the event announces.
    public var change: Change
    /// The trace the event belongs to (CloudEvents' extension "Distributed Tracing"), as sent. It
    /// is read only when changes are traced, and never rejected.
    public var traceparent: String?
    /// The vendor-specific trace state.
    public var tracestate: String?

    /// Creates an event.
    public init(source: String, id: String, time: String? = nil, change: Change) {
        self.source = source
        self.id = id
        self.time = time
        self.change = change
    }

    /// The longest `traceparent` or `tracestate`, bytes. Longer ones are ignored.
    private static let traceBytesMax = 1_024

    /// The `type` that this project's tools send. The gateway does not interpret it.
    public static let type = "dev.timeline-gateway.change"

    /// The event in the JSON event format (structured mode).
    public var json: JSONValue {
        var object: JSONObject = [
            "specversion": "1.0", "type": .string(Self.type),
            "source": .string(source), "id": .string(id),
        ]
        if let time { object["time"] = .string(time) }
        if let traceparent { object["traceparent"] = .string(traceparent) }
        if let tracestate { object["tracestate"] = .string(tracestate) }
        object["data"] = change.json
        return .object(object)
    }

    /// Reads an event in the JSON event format. Ignores `type`, and all extensions except those of
    /// distributed tracing. Throws ``Faults``, each with its path below `place`.
    init(_ value: JSONValue, at place: String, limits: Limits) throws(Faults) {
        var faults = Faults()
        guard var reader = MemberReader(value, at: place, ignoresUnknown: true, &faults) else {
            throw faults
        }
        var attributes = Attributes(
            specversion: reader.string(
                "specversion", required: true, limit: limits.stringBytesMax, &faults),
            type: reader.string("type", required: true, limit: limits.stringBytesMax, &faults),
            source: reader.string("source", required: true, limit: limits.stringBytesMax, &faults),
            id: reader.string("id", required: true, limit: limits.stringBytesMax, &faults),
            time: reader.string("time", limit: limits.stringBytesMax, &faults),
            contentType: reader.string(
                "datacontenttype", limit: limits.stringBytesMax, &faults))
        // These two have no meaning here; reading them reports values of a wrong type.
        _ = reader.string("subject", limit: limits.stringBytesMax, &faults)
        _ = reader.string("dataschema", limit: limits.stringBytesMax, &faults)
        attributes.traceparent = reader.value("traceparent")?.stringValue
        if attributes.traceparent != nil {
            attributes.tracestate = reader.value("tracestate")?.stringValue
        }
        let data = Self.data(&reader, &faults)
        try self.init(
            attributes, data: data, dataPlace: reader.path("data"),
            attributePrefix: place.isEmpty ? "" : "\(place).", limits: limits, faults: faults)
    }

    /// The context attributes of an event as read, before they are validated together.
    struct Attributes {
        var specversion: String?
        var type: String?
        var source: String?
        var id: String?
        var time: String?
        var contentType: String?
        var traceparent: String?
        var tracestate: String?
    }

    /// Validates the attributes in the same way for both modes, and reads the change.
    init(
        _ attributes: Attributes, data: JSONValue?, dataPlace: @autoclosure () -> String,
        attributePrefix: @autoclosure () -> String, limits: Limits, faults: Faults
    ) throws(Faults) {
        var faults = faults
        if let version = attributes.specversion, version != "1.0" {
            faults.add("\(attributePrefix())specversion", "must be `1.0`")
        }
        if let time = attributes.time, !Self.isTimestamp(time) {
            faults.add(
                "\(attributePrefix())time",
                "must be an RFC 3339 date and time such as 2026-11-21T09:30:00Z")
        }
        if let source = attributes.source, source.utf8.contains(0x20) {
            faults.add("\(attributePrefix())source", "must be a URI reference, without spaces")
        }
        if let type = attributes.contentType, !MediaType(type).isJSON {
            faults.add(
                "\(attributePrefix())datacontenttype",
                "must be a JSON type such as application/json")
        }
        var change: Change?
        if let data {
            do throws(Faults) {
                change = try Change(data, at: dataPlace(), limits: limits)
            } catch {
                faults.add(error, under: "")
            }
        } else if faults.isEmpty {
            faults.add(dataPlace(), "is required: the change, an object with at least `entity`")
        }
        guard faults.isEmpty, let source = attributes.source, let id = attributes.id, let change
        else { throw faults }
        self.init(source: source, id: id, time: attributes.time, change: change)
        if let text = attributes.traceparent, text.utf8.count <= Self.traceBytesMax {
            traceparent = text
            tracestate = attributes.tracestate.flatMap {
                $0.utf8.count <= Self.traceBytesMax ? $0 : nil
            }
        }
    }

    /// Returns `data`, or the JSON that `data_base64` encodes.
    private static func data(_ reader: inout MemberReader, _ faults: inout Faults) -> JSONValue? {
        let data = reader.value("data")
        guard let encoded = reader.value("data_base64") else { return data }
        guard data == nil else {
            faults.add(reader.path("data_base64"), "cannot be combined with `data`")
            return nil
        }
        guard let text = encoded.stringValue, let bytes = Base64.standard.decode(text),
            let value = try? JSONValue(parsing: bytes)
        else {
            faults.add(reader.path("data_base64"), "must be base64 of a JSON object")
            return nil
        }
        return value
    }

    /// Returns whether `text` is a `date-time` of RFC 3339. A leap second is accepted on any day.
    package static func isTimestamp(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard bytes.count >= 20, bytes.count <= 40 else { return false }
        func number(_ range: Range<Int>) -> Int? {
            guard range.upperBound <= bytes.count,
                bytes[range].allSatisfy({ $0 >= 0x30 && $0 <= 0x39 })
            else { return nil }
            return bytes[range].reduce(0) { $0 * 10 + Int($1 - 0x30) }
        }
        func isNumber(_ range: Range<Int>, within bounds: ClosedRange<Int>) -> Bool {
            number(range).map(bounds.contains) ?? false
        }
        guard bytes[4] == 0x2D, isNumber(5..<7, within: 1...12),
            bytes[7] == 0x2D, isNumber(8..<10, within: 1...31),
            bytes[10] | 0x20 == UInt8(ascii: "t"), isNumber(11..<13, within: 0...23),
            bytes[13] == 0x3A, isNumber(14..<16, within: 0...59), bytes[16] == 0x3A,
            isNumber(17..<19, within: 0...60), let year = number(0..<4), let month = number(5..<7),
            let day = number(8..<10), day <= Self.days(ofMonth: month, year: year)
        else { return false }
        var rest = bytes[19...]
        if rest.first == UInt8(ascii: ".") {
            rest = rest.dropFirst()
            let fraction = rest.prefix { $0 >= 0x30 && $0 <= 0x39 }
            guard !fraction.isEmpty else { return false }
            rest = rest.dropFirst(fraction.count)
        }
        guard let zone = rest.first else { return false }
        if zone | 0x20 == UInt8(ascii: "z") { return rest.count == 1 }
        let start = rest.startIndex
        return (zone == 0x2B || zone == 0x2D) && rest.count == 6
            && isNumber(start + 1..<start + 3, within: 0...23) && rest[start + 3] == 0x3A
            && isNumber(start + 4..<start + 6, within: 0...59)
    }

    private static func days(ofMonth month: Int, year: Int) -> Int {
        switch month {
        case 2: (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}
