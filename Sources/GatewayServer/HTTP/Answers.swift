import NIOCore
import NIOHTTP1
import WidgetModel

extension ProblemDetails {
    /// The problem as an answer.
    var answer: GatewayAnswer {
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
        if let retryAfter { headers.add(name: FieldName.retryAfter, value: String(retryAfter)) }
        return GatewayAnswer(.init(statusCode: status), json: json, headers: headers)
    }
}

extension GatewayAnswer {
    /// A JSON answer.
    init(_ status: HTTPResponseStatus, json: JSONValue, headers: HTTPHeaders = [:]) {
        var fields = headers
        if !fields.contains(name: FieldName.contentType) {
            fields.add(name: FieldName.contentType, value: "application/json")
        }
        self.init(status, headers: fields, body: ByteBuffer(bytes: json.serialized))
    }
}
