import Tracing
import WidgetModel

/// Encodes spans for a collector: an `ExportTraceServiceRequest` in protobuf's JSON, with ids in
/// hexadecimal (OTLP 1.x, section "JSON Protobuf Encoding").
package struct OTLPEncoding: Sendable {
    private let resource: JSONValue
    private let scope: JSONValue

    /// `resource` is the source of the spans: `service.name` and similar attributes. `scope` is the
    /// name and version of the instrumentation.
    package init(
        resource: [SpanRecord.Attribute], scope: (name: String, version: String)
    ) {
        self.resource = ["attributes": Self.json(resource)]
        self.scope = ["name": .string(scope.name), "version": .string(scope.version)]
    }

    package func body(_ spans: [SpanRecord]) -> [UInt8] {
        let request: JSONValue = [
            "resourceSpans": [
                [
                    "resource": resource,
                    "scopeSpans": [["scope": scope, "spans": .array(spans.map { Self.json($0) })]],
                ]
            ]
        ]
        return request.serialized
    }

    /// `SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK`
    private static let knowsRemote: Int64 = 0x100
    /// `SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK`
    private static let isRemote: Int64 = 0x200

    private static func json(_ span: SpanRecord) -> JSONValue {
        var object = members(span.context, isRemote: span.parent?.isRemote == true)
        if let parent = span.parent { object["parentSpanId"] = .string(parent.spanID.hexadecimal) }
        object["name"] = .string(span.name)
        object["kind"] = .integer(number(span.kind))
        object["startTimeUnixNano"] = .string(String(span.start))
        object["endTimeUnixNano"] = .string(String(span.end))
        if !span.attributes.isEmpty { object["attributes"] = json(span.attributes) }
        if !span.events.isEmpty { object["events"] = .array(span.events.map(json)) }
        if !span.links.isEmpty {
            object["links"] = .array(span.links.map { .object(members($0, isRemote: $0.isRemote)) })
        }
        if let failed = span.failed { object["status"] = ["code": .integer(failed ? 2 : 1)] }
        return .object(object)
    }

    private static func json(_ event: SpanRecord.Event) -> JSONValue {
        var object: JSONObject = [
            "timeUnixNano": .string(String(event.time)), "name": .string(event.name),
        ]
        if !event.attributes.isEmpty { object["attributes"] = json(event.attributes) }
        return .object(object)
    }

    /// The members that identify a span or a link. `isRemote` is the parent's or the link's.
    private static func members(_ context: TraceContext, isRemote: Bool) -> JSONObject {
        let remote = isRemote ? Self.isRemote : 0
        var object: JSONObject = [
            "traceId": .string(context.traceID.hexadecimal),
            "spanId": .string(context.spanID.hexadecimal),
            "flags": .integer(Int64(context.flags) | knowsRemote | remote),
        ]
        if !context.state.text.isEmpty { object["traceState"] = .string(context.state.text) }
        return object
    }

    /// `Span.SpanKind`
    private static func number(_ kind: SpanKind) -> Int64 {
        switch kind {
        case .internal: 1
        case .server: 2
        case .client: 3
        case .producer: 4
        case .consumer: 5
        }
    }

    private static func json(_ attributes: [SpanRecord.Attribute]) -> JSONValue {
        .array(attributes.map { ["key": .string($0.name), "value": json($0.value)] })
    }

    /// `AnyValue`
    private static func json(_ value: SpanRecord.Value) -> JSONValue {
        switch value {
        case .text(let text): ["stringValue": .string(text)]
        case .integer(let number): ["intValue": .string(String(number))]
        case .flag(let flag): ["boolValue": .bool(flag)]
        case .number(let number) where number.isFinite: ["doubleValue": .number(number)]
        case .number(let number):
            ["doubleValue": number.isNaN ? "NaN" : number < 0 ? "-Infinity" : "Infinity"]
        case .texts(let texts):
            ["arrayValue": ["values": .array(texts.map { ["stringValue": .string($0)] })]]
        }
    }
}
