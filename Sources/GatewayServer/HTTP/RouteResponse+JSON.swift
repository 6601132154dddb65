import NIOCore
import NIOHTTP1
import WidgetModel

extension ProblemDetails {
    package var answer: RouteResponse {
        var headers: HTTPHeaders = [FieldName.contentType: Self.mediaType]
        if status == 401 {
            headers.add(
                name: FieldName.wwwAuthenticate,
                value: code == "token-missing"
                    ? "Bearer realm=\"timeline-gateway\""
                    : "Bearer realm=\"timeline-gateway\", error=\"invalid_token\"")
        } else if status == 403, code == "insufficient-scope" {
            headers.add(
                name: FieldName.wwwAuthenticate,
                value: "Bearer realm=\"timeline-gateway\", error=\"insufficient_scope\"")
        }
        if code == Problem.unsupportedContentEncodingCode {
            headers.add(name: FieldName.acceptEncoding, value: "identity")
        }
        if let retryAfter { headers.add(name: FieldName.retryAfter, value: String(retryAfter)) }
        if let rateLimit {
            headers.add(
                name: FieldName.rateLimitPolicy,
                value: "\"\(rateLimit.policy)\";q=\(rateLimit.quota);w=\(rateLimit.window)")
            headers.add(
                name: FieldName.rateLimit,
                value: "\"\(rateLimit.policy)\";r=0;t=\(retryAfter ?? 1)")
        }
        if let digest { headers.add(name: FieldName.timelineRegistration, value: digest) }
        return RouteResponse(.init(statusCode: status), json: json, headers: headers)
    }
}

extension RouteResponse {
    package init(_ status: HTTPResponseStatus, json: JSONValue, headers: HTTPHeaders = [:]) {
        var fields = headers
        if !fields.contains(name: FieldName.contentType) {
            fields.add(name: FieldName.contentType, value: Self.json)
        }
        self.init(status, headers: fields, body: ByteBuffer(bytes: json.serialized))
    }

    /// Creates a response that is a document.
    package init(
        _ status: HTTPResponseStatus, document: some Encodable, headers: HTTPHeaders = [:]
    ) throws {
        self.init(status, json: try JSONValue(encoding: document), headers: headers)
    }

    /// Creates a JSON response from numbers by name, without an intermediate tree. No name may need
    /// an escape.
    init(_ status: HTTPResponseStatus, numbers: KeyValuePairs<StaticString, Int64>) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(256)
        for (name, number) in numbers {
            bytes.append(UInt8(ascii: bytes.isEmpty ? "{" : ","))
            bytes.append(UInt8(ascii: "\""))
            name.withUTF8Buffer { bytes.append(contentsOf: $0) }
            bytes.append(UInt8(ascii: "\""))
            bytes.append(UInt8(ascii: ":"))
            bytes.append(contentsOf: String(number).utf8)
        }
        if bytes.isEmpty { bytes.append(UInt8(ascii: "{")) }
        bytes.append(UInt8(ascii: "}"))
        self.init(
            status, headers: [FieldName.contentType: Self.json], body: ByteBuffer(bytes: bytes))
    }

    private static let json = "application/json"
}
