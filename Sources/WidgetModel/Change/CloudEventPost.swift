/// The reason why a posted document was rejected. Each case maps to one HTTP status.
public enum DocumentRefusal: Error, Sendable, Equatable {
    /// 400: the document is not of the stated media type.
    case malformed(String)
    /// 413: the document exceeds a limit, which the text names.
    case tooLarge(String)
    /// 415: the media type is not supported; the text names those that are.
    case unsupportedMediaType(String)
    /// 422: the document is well-formed but invalid; all faults are listed.
    case wrong(Faults)
}

/// The events of one request in any of the three modes of the CloudEvents HTTP binding.
public struct CloudEventPost: Sendable {
    /// The events in the order of the request; empty for an empty batch.
    public let events: [CloudEvent]

    /// Reads the events of a request.
    ///
    /// - Parameters:
    ///   - contentType: The `Content-Type` header; `nil` when missing: an event in binary mode is
    ///     then JSON, as its data always is.
    ///   - headers: Every header of the request whose name starts with `ce-`, names in lower case.
    ///   - body: The whole body.
    ///   - limits: The limits of the events and the body.
    /// - Throws: ``DocumentRefusal``. One invalid event rejects the whole request.
    public init(
        contentType: String?, headers: [(name: String, value: String)], body: [UInt8],
        limits: Limits
    ) throws(DocumentRefusal) {
        guard let contentType = contentType ?? (headers.isEmpty ? nil : "application/json") else {
            throw .unsupportedMediaType(
                "Content-Type is missing; send application/cloudevents+json, "
                    + "application/cloudevents-batch+json, or application/json with ce- headers")
        }
        let mediaType = MediaType(contentType)
        // The batch type begins with the structured type's name, so it is checked first.
        if mediaType.essence.hasPrefix("application/cloudevents-batch") {
            guard mediaType.essence == "application/cloudevents-batch+json" else {
                throw .unsupportedMediaType("send batches as application/cloudevents-batch+json")
            }
            events = try Self.batch(body, limits: limits)
        } else if mediaType.essence.hasPrefix("application/cloudevents") {
            guard mediaType.essence == "application/cloudevents+json" else {
                throw .unsupportedMediaType("send events as application/cloudevents+json")
            }
            try Self.checkSize(body.count, limits: limits)
            let value = try Self.parse(body)
            do throws(Faults) {
                events = [try CloudEvent(value, at: "", limits: limits)]
            } catch {
                throw .wrong(error)
            }
        } else {
            guard mediaType.isJSON else {
                throw .unsupportedMediaType(
                    "send application/cloudevents+json, application/cloudevents-batch+json, "
                        + "or application/json with ce- headers")
            }
            try Self.checkSize(
                body.count + headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count },
                limits: limits)
            events = [try Self.binary(headers, contentType, body, limits: limits)]
        }
    }

    private static func parse(_ body: [UInt8]) throws(DocumentRefusal) -> JSONValue {
        do throws(JSONFault) {
            return try JSONValue(parsing: body)
        } catch {
            throw .malformed("The body is not JSON: \(error)")
        }
    }

    private static func checkSize(_ count: Int, limits: Limits) throws(DocumentRefusal) {
        guard count <= limits.eventBytesMax else {
            throw .tooLarge("an event may have at most \(limits.eventBytesMax) bytes")
        }
    }

    private static func batch(
        _ body: [UInt8], limits: Limits
    ) throws(DocumentRefusal) -> [CloudEvent] {
        guard body.count <= limits.postBytesMax else {
            throw .tooLarge("a post may have at most \(limits.postBytesMax) bytes")
        }
        guard case .array(let elements) = try parse(body) else {
            throw .wrong(Faults("", "a batch must be a JSON array of events"))
        }
        guard elements.count <= limits.postEventsMax else {
            throw .tooLarge(
                "the batch has \(elements.count) events; at most \(limits.postEventsMax) are allowed"
            )
        }
        var faults = Faults()
        var events: [CloudEvent] = []
        events.reserveCapacity(elements.count)
        for (index, element) in elements.enumerated() {
            // Events of a small body are within the limit; others are measured as serialized again.
            if body.count > limits.eventBytesMax {
                try checkSize(element.serialized.count, limits: limits)
            }
            do throws(Faults) {
                events.append(
                    try CloudEvent(element, at: "[" + String(index) + "]", limits: limits))
            } catch {
                faults.add(error, under: "")
            }
        }
        guard faults.isEmpty else { throw .wrong(faults) }
        return events
    }

    /// Binary mode (CloudEvents HTTP binding, section 3.1).
    private static func binary(
        _ headers: [(name: String, value: String)], _ contentType: String, _ body: [UInt8],
        limits: Limits
    ) throws(DocumentRefusal) -> CloudEvent {
        var faults = Faults()
        func attribute(_ name: String, isRequired: Bool) -> String? {
            let place = "ce-\(name)"
            guard let header = headers.first(where: { $0.name == place }) else {
                if isRequired {
                    faults.add(
                        place,
                        "is required in binary mode; or send the event as "
                            + "application/cloudevents+json")
                }
                return nil
            }
            guard let value = decodeHeader(header.value) else {
                faults.add(place, "is not percent-encoded UTF-8")
                return nil
            }
            if let reason = value.isUnfit(limit: limits.stringBytesMax) {
                faults.add(place, reason)
                return nil
            }
            return value
        }
        if headers.contains(where: { $0.name == "ce-datacontenttype" }) {
            faults.add("ce-datacontenttype", "must not be sent; use Content-Type")
        }
        var attributes = CloudEvent.Attributes(
            specversion: attribute("specversion", isRequired: true),
            type: attribute("type", isRequired: true),
            source: attribute("source", isRequired: true),
            id: attribute("id", isRequired: true),
            time: attribute("time", isRequired: false),
            contentType: contentType)
        if let field = headers.first(where: { $0.name == "ce-traceparent" }) {
            attributes.traceparent = decodeHeader(field.value)
            attributes.tracestate = headers.first { $0.name == "ce-tracestate" }
                .flatMap { decodeHeader($0.value) }
        }
        let data: JSONValue? = body.isEmpty ? nil : try parse(body)
        do throws(Faults) {
            return try CloudEvent(
                attributes, data: data, dataPlace: "", attributePrefix: "ce-", limits: limits,
                faults: faults)
        } catch {
            throw .wrong(error)
        }
    }

    /// Decodes a header value: unescapes a quoted string, then decodes percent escapes exactly
    /// once. Returns `nil` unless the result is UTF-8 (CloudEvents HTTP binding, section 3.1.3.2).
    static func decodeHeader(_ value: String) -> String? {
        var bytes = Array(value.utf8)
        if bytes.count >= 2, bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\"") {
            var unescaped: [UInt8] = []
            var isEscaped = false
            for byte in bytes[1..<bytes.count - 1] {
                if !isEscaped, byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else {
                    unescaped.append(byte)
                    isEscaped = false
                }
            }
            bytes = unescaped
        }
        var decoded: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%") {
                guard index + 2 < bytes.count,
                    let high = Character(Unicode.Scalar(bytes[index + 1])).hexDigitValue,
                    let low = Character(Unicode.Scalar(bytes[index + 2])).hexDigitValue
                else { return nil }
                decoded.append(UInt8(high << 4 | low))
                index += 3
            } else {
                decoded.append(bytes[index])
                index += 1
            }
        }
        return String(validating: decoded, as: UTF8.self)
    }
}
