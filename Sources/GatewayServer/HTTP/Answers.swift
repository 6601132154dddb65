import HTTPTypes
import Hummingbird
import NIOCore
import WidgetModel

extension ProblemDetails {
    /// The problem as an HTTP response.
    var response: Response {
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
        return Response(.init(code: status), json: json, headers: headers)
    }
}

extension Response {
    /// A JSON answer.
    init(_ status: HTTPResponse.Status, json: JSONValue, headers: HTTPFields = HTTPFields()) {
        let body = json.serialized
        let length = String(body.count)
        var fields: HTTPFields =
            headers.contains(.contentType)
            ? [.contentLength: length]
            : [.contentType: "application/json", .contentLength: length]
        if !headers.isEmpty { fields.append(contentsOf: headers) }
        self.init(
            status: status, headers: fields,
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: body)))
    }
}
