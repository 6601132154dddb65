import HTTPTypes
import NIOCore
import WidgetModel

extension ProblemDetails {
    /// The problem as an answer.
    var answer: GatewayAnswer {
        var headers: HTTPFields = [.contentType: Self.mediaType]
        if status == 401 {
            headers[.wwwAuthenticate] =
                code == "token-missing"
                ? "Bearer realm=\"timeline-gateway\""
                : "Bearer realm=\"timeline-gateway\", error=\"invalid_token\""
        } else if status == 403, code == "insufficient-scope" {
            headers[.wwwAuthenticate] =
                "Bearer realm=\"timeline-gateway\", error=\"insufficient_scope\""
        }
        if let retryAfter { headers[.retryAfter] = String(retryAfter) }
        return GatewayAnswer(.init(code: status), json: json, headers: headers)
    }
}

extension GatewayAnswer {
    /// A JSON answer.
    init(_ status: HTTPResponse.Status, json: JSONValue, headers: HTTPFields = HTTPFields()) {
        var fields = headers
        if fields.isEmpty || !fields.contains(.contentType) {
            fields.append(HTTPField(name: .contentType, value: "application/json"))
        }
        self.init(status, headers: fields, body: ByteBuffer(bytes: json.serialized))
    }
}
