import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTP2
import WidgetModel

/// Answers every error as a problem, and unknown paths and methods by what the gateway knows.
struct ProblemMiddleware: RouterMiddleware {
    let routes: [GatewayRoute]

    func handle(
        _ request: Request, context: GatewayContext,
        next: (Request, GatewayContext) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let problem as ProblemDetails {
            return problem.response
        } catch let error as HTTPError where error.status == .notFound {
            return unmatched(request)
        } catch let error as HTTPError where error.status == .contentTooLarge {
            return Problem.tooLarge("The body is larger than this route takes.").response
        } catch is CancellationError {
            throw CancellationError()
        } catch is HTTPParserError {
            return Problem.malformed("The request's body is not HTTP.").response
        } catch is ChannelError, is IOError, is NIOHTTP2Errors.StreamClosed {
            // The peer left; there is nobody to answer.
            return Problem.malformed("The request broke off.").response
        } catch {
            context.logger.error(
                "a request failed",
                metadata: ["path": "\(request.uri.path)", "error": "\(type(of: error))"])
            return ProblemDetails(
                status: 500, code: "internal", title: "The gateway failed; its log says why"
            ).response
        }
    }

    private func unmatched(_ request: Request) -> Response {
        let allowed = routes.filter { $0.matches(request.uri.path) }.map(\.method)
        guard !allowed.isEmpty else { return Problem.noSuchRoute.response }
        let methods = Set(allowed.map(\.rawValue)).sorted().joined(separator: ", ")
        var response = Problem.methodNotAllowed(methods).response
        response.headers[.allow] = methods
        return response
    }
}

/// One route of the TLS port.
struct GatewayRoute: Sendable {
    typealias Handler = @Sendable (Request, GatewayContext) async throws -> Response

    let method: HTTPRequest.Method
    /// Segments; those that start with a colon stand for anything.
    let path: String
    let handler: Handler

    init(_ method: HTTPRequest.Method, _ path: String, _ handler: @escaping Handler) {
        self.method = method
        self.path = path
        self.handler = handler
    }

    /// Whether a request's path is this route's, whatever its method.
    func matches(_ other: String) -> Bool {
        let own = path.split(separator: "/")
        let segments = other.split(separator: "/")
        return own.count == segments.count
            && zip(own, segments).allSatisfy { $0.hasPrefix(":") || $0 == $1 }
    }
}

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
        return Response(
            status: .init(code: status), headers: headers,
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: json.serialized)))
    }
}

extension Response {
    /// A JSON answer.
    init(_ status: HTTPResponse.Status, json: JSONValue, headers: HTTPFields = [:]) {
        var headers = headers
        if headers[.contentType] == nil { headers[.contentType] = "application/json" }
        self.init(
            status: status, headers: headers,
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: json.serialized)))
    }
}
