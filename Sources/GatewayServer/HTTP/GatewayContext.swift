import Foundation
import GatewayCore
import GatewaySigning
import GatewayTLS
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTP2
import WidgetModel

/// What a request's handler knows of its connection.
struct GatewayContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// The connection, or the HTTP/2 stream.
    let channel: any Channel

    init(source: Source) {
        coreContext = .init(source: source)
        channel = source.channel
    }

    /// An app or client of the path, decoded.
    ///
    /// Checked here for every route: names are compared as strings in memory and as bytes on disk,
    /// and only plain ASCII is the same name for both.
    ///
    /// - Throws: 400 when it is not percent-encoded UTF-8, 422 when it is no valid id.
    func name(_ parameter: String) throws -> String {
        guard let text = parameters.get(parameter) else { throw Problem.noSuchRoute }
        guard let name = text.removingPercentEncoding else {
            throw Problem.malformed("The path is not percent-encoded UTF-8.")
        }
        guard Identifier.isValid(name) else { throw Problem.wrongName(parameter) }
        return name
    }

    /// The client of the path.
    func clientKey() throws -> ClientKey {
        ClientKey(app: try name("app"), client: try name("client"))
    }

    /// The SAN URIs of the connection's client certificate.
    func certificateURIs() async -> [String] {
        let connection = channel.parent ?? channel
        // A stream of HTTP/2 has the connection as its parent; a connection has the listener.
        for candidate in [channel, connection] {
            let uris = try? await candidate.pipeline.handler(type: TLSServerHandler.self)
                .map(\.peerCertificateURIs).get()
            if let uris { return uris }
        }
        return []
    }
}

/// Answers every error as a problem, and unknown paths and methods by what the gateway knows.
struct ProblemMiddleware: RouterMiddleware {
    let routes: [RouteDescription]

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

/// A route's method and path, for 405.
struct RouteDescription: Sendable {
    let method: HTTPRequest.Method
    /// Segments; those that start with a colon stand for anything.
    let path: String

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

extension Request {
    /// The query's parameters, decoded, in order.
    ///
    /// - Throws: 400 when a part is not percent-encoded UTF-8 or has control characters.
    func query() throws -> [(name: String, value: String)] {
        let text = head.path ?? ""
        guard let mark = text.firstIndex(of: "?") else { return [] }
        return try QueryText.parameters(text[text.index(after: mark)...])
    }

    /// The one value of a query parameter.
    ///
    /// - Throws: 400 as ``query()`` does, and when it is given twice.
    func queryValue(_ name: String) throws -> String? {
        let values = try query().filter { $0.name == name }.map(\.value)
        guard values.count <= 1 else {
            throw Problem.malformed("The query has `\(name)` more than once.")
        }
        return values.first
    }

    /// Requires that the client takes `mediaType` (RFC 9110 section 12.5.1).
    ///
    /// - Throws: 406.
    func requireAcceptable(_ mediaType: String) throws {
        let ranges = headers[values: .accept].flatMap { $0.split(separator: ",") }
            .map { MediaType(String($0)).essence }
        let essence = MediaType(mediaType).essence
        let family = essence.prefix { $0 != "/" } + "/*"
        guard
            ranges.isEmpty
                || ranges.contains(where: { $0 == "*/*" || $0 == essence || $0 == family })
        else { throw Problem.notAcceptable("This resource is \(essence) only.") }
    }

    /// The whole body, refused as too large before more than `limit` bytes are kept.
    ///
    /// - Throws: 413.
    func bytes(upTo limit: Int) async throws -> [UInt8] {
        let problem = Problem.tooLarge("At most \(limit) bytes are allowed here.")
        if let length = headers[.contentLength].flatMap({ Int($0) }), length > limit {
            throw problem
        }
        var bytes: [UInt8] = []
        for try await buffer in body {
            guard bytes.count + buffer.readableBytes <= limit else { throw problem }
            bytes.append(contentsOf: buffer.readableBytesView)
        }
        return bytes
    }

    /// The body as JSON.
    ///
    /// - Throws: 400, 413, 415.
    func json(upTo limit: Int) async throws -> JSONValue {
        let contentType = headers[.contentType]
        guard let contentType, MediaType(contentType).isJSON else {
            throw Problem.unsupportedMediaType(
                contentType == nil
                    ? "Content-Type is missing; send application/json" : "send application/json")
        }
        do {
            return try JSONValue(parsing: try await bytes(upTo: limit))
        } catch let fault as JSONFault {
            throw Problem.malformed("The body is not JSON: \(fault)")
        }
    }
}

/// Reads query texts.
enum QueryText {
    /// More parameters than this are refused.
    private static let parametersMax = 64

    /// The parameters of a query, decoded, in order.
    ///
    /// - Throws: 400 when a part is not percent-encoded UTF-8 or has control characters.
    static func parameters(
        _ query: Substring
    ) throws(ProblemDetails) -> [(name: String, value: String)] {
        let parts = query.split(separator: "&")
        guard parts.count <= parametersMax else {
            throw Problem.malformed("The query has more than \(parametersMax) parameters.")
        }
        var parameters: [(name: String, value: String)] = []
        for part in parts {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = String(pair[0]).removingPercentEncoding,
                let value = (pair.count > 1 ? String(pair[1]) : "").removingPercentEncoding,
                !(name + value).utf8.contains(where: { $0 < 0x20 || $0 == 0x7F })
            else {
                throw Problem.malformed(
                    "The query must be percent-encoded UTF-8 without control characters.")
            }
            parameters.append((name, value))
        }
        return parameters
    }
}
