import GatewayEngine
import GatewaySigning
import GatewayTLS
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTP2
import WidgetModel

/// The routes of a port: finds the route of a request, and returns every error as a problem.
package struct RouteTable: Sendable {
    package let routes: [GatewayRoute]
    /// `nil` where requests are not limited.
    package let limits: RequestLimits?
    /// `nil` where nothing is traced.
    package let tracing: GatewayTracing?
    /// The pages that may read responses.
    let cors: CORSPolicy

    package init(
        _ routes: [GatewayRoute], limits: RequestLimits? = nil, tracing: GatewayTracing? = nil,
        cors: CORSPolicy = CORSPolicy([])
    ) {
        self.routes = routes
        self.limits = limits
        self.tracing = tracing
        self.cors = cors
    }

    /// Returns the first route of a path, for any method.
    package func route(of segments: PathSegments) -> GatewayRoute? {
        routes.first { segments.match($0.path) }
    }

    /// Returns the response to a request. Throws only `CancellationError`.
    ///
    /// - Parameter reader: The sender if the request has no token; `nil` where it needs one.
    package func respond(
        to request: GatewayRequest, on channel: any Channel, as reader: VerifiedToken? = nil,
        logger: Logger
    ) async throws -> RouteResponse {
        let segments = PathSegments(request.head.uri)
        var answer = try await respond(to: request, at: segments, on: channel, as: reader, logger)
        cors.complete(&answer, to: request.head, at: segments)
        return answer
    }

    private func respond(
        to request: GatewayRequest, at segments: PathSegments, on channel: any Channel,
        as reader: VerifiedToken?, _ logger: Logger
    ) async throws -> RouteResponse {
        // A response to HEAD is that to GET; its connection omits the body.
        let method = request.head.method == .HEAD ? .GET : request.head.method
        guard
            let route = routes.first(where: { $0.method == method && segments.match($0.path) })
        else { return unmatched(request.head, segments) }
        // A name left empty by mistake must not delete more than intended.
        if route.method == .DELETE, segments.hasEmpty { return Problem.noSuchRoute.answer }
        let context = GatewayContext(
            channel: channel, names: segments.names(route.path), reader: reader)
        var answer: RouteResponse
        if let tracing, route.isTraced {
            answer = try await tracing.request(request, to: route) {
                try await self.loggedAnswer(request, to: route, context: context, logger: logger)
            }
        } else {
            answer = try await loggedAnswer(request, to: route, context: context, logger: logger)
        }
        if method == .GET {
            answer.omitKnown(request.head.headers)
        } else if method == .OPTIONS, answer.head.status.code < 300 {
            answer.head.headers.replaceOrAdd(name: FieldName.allow, value: methods(at: segments))
        }
        return answer
    }

    private func loggedAnswer(
        _ request: GatewayRequest, to route: GatewayRoute, context: GatewayContext,
        logger: Logger
    ) async throws -> RouteResponse {
        let began = ContinuousClock.now
        let answer = try await answer(request, to: route, context: context, logger: logger)
        // Within the span, if there is one, so that the record has its id.
        logger.debug(
            "a request was answered",
            metadata: [
                "method": "\(request.head.method.rawValue)", "route": "\(route.template)",
                "app": "\(context.text("app"))", "client": "\(context.text("client"))",
                "status": "\(answer.head.status.code)",
                "milliseconds": "\((ContinuousClock.now - began) / .milliseconds(1))",
            ])
        return answer
    }

    private func answer(
        _ request: GatewayRequest, to route: GatewayRoute, context: GatewayContext,
        logger: Logger
    ) async throws -> RouteResponse {
        let account: RequestAccount?
        do throws(ProblemDetails) {
            let source = try request.source.get()
            account = limits.map {
                RequestAccount($0, source: source, on: context.channel.eventLoop)
            }
        } catch {
            limits?.log?.log(.malformedForwarded, of: "any", ["detail": "\(error.detail ?? "")"])
            return error.answer
        }
        defer { account?.close() }
        var request = request
        request.account = account
        do {
            if let account { try account.limits.admit(account.source) }
            return try await route.handler(request, context)
        } catch let problem as ProblemDetails {
            return answer(problem, to: route, context)
        } catch let error as EngineError {
            return answer(Problem.engine(error), to: route, context)
        } catch is CancellationError {
            throw CancellationError()
        } catch is HTTPParserError {
            return Problem.malformed("The request's body is not valid HTTP.").answer
        } catch is ChannelError, is IOError, is TLSError, is any NIOHTTP2Error {
            // The peer has left or broken the protocol; the response will not reach it.
            return Problem.malformed("The request is incomplete.").answer
        } catch {
            logger.error(
                "a request failed",
                metadata: [
                    "path": "\(request.head.uri.prefix { $0 != "?" })",
                    "error": "\(type(of: error))",
                ])
            return ProblemDetails(
                status: 500, code: "internal", title: "Internal error; see the gateway's log"
            ).answer
        }
    }

    /// Returns the response to a request that failed, and logs that the gateway had no room for it.
    private func answer(
        _ problem: ProblemDetails, to route: GatewayRoute, _ context: GatewayContext
    ) -> RouteResponse {
        if problem.status == 503 {
            let (app, reason) = (context.text("app"), problem.detail ?? "")
            limits?.log?.log(
                .unavailable, of: "\(route.template) \(app)",
                ["route": "\(route.template)", "app": "\(app)", "reason": "\(reason)"])
        }
        return problem.answer
    }

    /// Returns the response to a request for no route: to `OPTIONS` the methods of the path, or of
    /// the port (RFC 9110 section 9.3.7).
    private func unmatched(_ head: HTTPRequestHead, _ segments: PathSegments) -> RouteResponse {
        let asksPort = head.method == .OPTIONS && ["*", "/"].contains(head.uri)
        let methods = methods(at: asksPort ? nil : segments)
        guard !methods.isEmpty else { return Problem.noSuchRoute.answer }
        let headers: HTTPHeaders = [FieldName.allow: methods]
        if head.method == .OPTIONS { return RouteResponse(.noContent, headers: headers) }
        var answer = Problem.methodNotAllowed(methods).answer
        answer.head.headers.add(contentsOf: headers)
        return answer
    }

    /// Returns the methods that the path of `segments` supports, as a list; empty for an unknown
    /// path. `nil` means all paths together.
    private func methods(at segments: PathSegments?) -> String {
        let here = routes.filter { segments?.match($0.path) ?? true }.map(\.method)
        var methods = Set(here.map(\.rawValue))
        if methods.contains(HTTPMethod.GET.rawValue) { methods.insert(HTTPMethod.HEAD.rawValue) }
        if !methods.isEmpty { methods.insert(HTTPMethod.OPTIONS.rawValue) }
        return methods.sorted().joined(separator: ", ")
    }
}

package struct GatewayRoute: Sendable {
    package typealias Handler =
        @Sendable (GatewayRequest, GatewayContext) async throws -> RouteResponse

    /// A segment of a route's path.
    package enum Segment: Sendable {
        /// Exactly these bytes.
        case literal([UInt8])
        /// Any text; the context provides it under this name.
        case name(String)
    }

    package let method: HTTPMethod
    let path: [Segment]
    /// The path in the notation of OpenTelemetry's `http.route` and of the OpenAPI document.
    package let template: String
    /// Whether its requests are traced: those from backends and operators are, those from or about
    /// individual clients are not. The latter are very numerous, and they concern people.
    let isTraced: Bool
    let handler: Handler

    /// - Parameter path: The path in the notation of ``path(_:)``.
    package init(_ method: HTTPMethod, _ path: String, _ handler: @escaping Handler) {
        self.method = method
        self.path = Self.path(path)
        template = Self.template(of: path)
        isTraced = path.hasPrefix("/v1/") && !path.contains(":client")
        self.handler = handler
    }

    package static func document(of port: OpenAPIDocument.Port, limits: Limits) -> GatewayRoute {
        let answer = RouteResponse(.ok, json: OpenAPIDocument(of: port, limits: limits).json)
        return GatewayRoute(.GET, OpenAPIDocument.path) { _, _ in answer }
    }

    static func template(of path: String) -> String {
        let segments = path.split(separator: "/").map {
            $0.hasPrefix(":") ? "/{\($0.dropFirst())}" : "/\($0)"
        }
        return segments.isEmpty ? "/" : segments.joined()
    }

    /// The segments of a path; those that start with a colon match any text.
    package static func path(_ text: String) -> [Segment] {
        text.split(separator: "/").map {
            $0.hasPrefix(":") ? .name(String($0.dropFirst())) : .literal(Array($0.utf8))
        }
    }
}

/// The segments of a request target's path, as they were sent; empty ones are ignored.
package struct PathSegments {
    private let bytes: [UInt8]
    private var segments: [Range<Int>] = []
    private var queryStart: Int?
    /// Whether a segment is empty: between two slashes, or after the last.
    private(set) var hasEmpty = false

    /// The text after the question mark; empty without one.
    var query: String {
        queryStart.map { String(decoding: bytes[$0...], as: UTF8.self) } ?? ""
    }

    /// Splits the path of an origin-form or absolute-form target (RFC 9112 sections 3.2.1 and
    /// 3.2.2); any other target has no segments.
    package init(_ target: String) {
        bytes = Array(target.utf8)
        guard let root = Self.pathStart(bytes) else { return }
        var start = root
        for index in bytes.indices[root...] {
            let byte = bytes[index]
            let isEnd = byte == UInt8(ascii: "?")
            guard isEnd || byte == UInt8(ascii: "/") else { continue }
            add(start..<index, root)
            start = index + 1
            if isEnd {
                queryStart = start
                return
            }
        }
        add(start..<bytes.count, root)
    }

    private mutating func add(_ segment: Range<Int>, _ root: Int) {
        if !segment.isEmpty {
            segments.append(segment)
        } else if segment.lowerBound > root {
            hasEmpty = true
        }
    }

    /// The start of the path: after scheme and authority, if there are any.
    private static func pathStart(_ target: [UInt8]) -> Int? {
        if target.first == UInt8(ascii: "/") { return 0 }
        guard let mark = target.firstRange(of: Array("://".utf8)),
            ["http", "https"].contains(
                String(decoding: target[..<mark.lowerBound], as: UTF8.self).lowercased())
        else { return nil }
        return target[mark.upperBound...].firstIndex {
            $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?")
        }
    }

    /// Whether the segments are those of a route's path.
    func match(_ path: [GatewayRoute.Segment]) -> Bool {
        path.count == segments.count && begin(with: path)
    }

    /// Whether the first segments are those of a path.
    package func begin(with path: [GatewayRoute.Segment]) -> Bool {
        guard path.count <= segments.count else { return false }
        for (expected, range) in zip(path, segments) {
            if case .literal(let literal) = expected, !bytes[range].elementsEqual(literal) {
                return false
            }
        }
        return true
    }

    /// The texts that match the names of a path that the segments begin with.
    package func names(_ path: [GatewayRoute.Segment]) -> [(name: String, text: String)] {
        var names: [(name: String, text: String)] = []
        for (expected, range) in zip(path, segments) {
            guard case .name(let name) = expected else { continue }
            names.append((name, String(decoding: bytes[range], as: UTF8.self)))
        }
        return names
    }
}
