import GatewayCore
import GatewaySigning
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOHTTP1
import WidgetModel

/// Answers every request of the admin port: judges it first, then leaves it to the port's own routes,
/// or to those of the TLS port.
struct AdminResponder: HTTPResponder {
    let own: AdminTable
    let access: AdminAccess
    let authorizer: Authorizer
    /// Those of the TLS port.
    let table: RouteTable
    /// Bytes of a body.
    let bodyBytesMax: Int

    func respond(to request: Request, context: AdminContext) async throws -> Response {
        var response: Response
        do {
            response = try await judged(request, context)
        } catch let problem as ProblemDetails {
            response = Response(problem.answer)
        }
        for (name, value) in AdminHeaders.fields where response.headers[name] == nil {
            response.headers[name] = value
        }
        return response
    }

    private func judged(_ request: Request, _ context: AdminContext) async throws -> Response {
        let path = String(request.uri.path)
        let verdict = access.judge(
            AdminAccess.Look(
                method: request.method.rawValue, path: path, host: request.head.authority,
                origin: request.headers[.origin], site: request.headers[.secFetchSite],
                hasAuthorization: request.headers[.authorization] != nil),
            isStatic: StaticFiles.file(path) != nil)
        let isShared = path.hasPrefix("/v1/") || path.hasPrefix("/.well-known/")
        var reader: VerifiedToken?
        switch verdict {
        case .open: break
        case .reader: reader = Self.reader
        case .operators:
            try requireOperator(request, PathSegments(path))
        case .refused(let detail):
            throw Problem.forbidden("other-origin", detail)
        }
        guard isShared else {
            return try await own.respond(to: request, context: context)
        }
        return try await shared(request, context, as: reader)
    }

    /// Requires the token of an operator: of the path's app, or where it has none, of every app.
    private func requireOperator(_ request: Request, _ path: PathSegments) throws {
        let token = try authorizer.token(
            request.headers[.authorization], certificateURIs: { [] })
        let app = Self.appPaths.first { path.match($0) }.map(path.names)?.first?.text
        try authorizer.require(
            .operate, token, app: app?.percentDecoded ?? VerifiedToken.everyApp)
    }

    /// Paths that are about one app, by how many segments follow it.
    private static var appPaths: [[GatewayRoute.Segment]] {
        (0...4).map { count in
            GatewayRoute.path(
                "/v1/apps/:app" + (0..<count).map { "/:rest\($0)" }.joined())
        }
    }

    /// Answers by a route of the TLS port.
    private func shared(
        _ request: Request, _ context: AdminContext, as reader: VerifiedToken?
    ) async throws -> Response {
        var request = request
        var body: ByteBuffer?
        if request.method != .get, request.method != .head {
            do {
                body = try await request.collectBody(upTo: bodyBytesMax)
            } catch is NIOTooManyBytesError {
                throw Problem.tooLarge("At most \(bodyBytesMax) bytes are allowed here.")
            }
        }
        var headers = HTTPHeaders()
        for field in request.headers { headers.add(name: field.name.rawName, value: field.value) }
        let head = HTTPRequestHead(
            version: .http1_1, method: NIOHTTP1.HTTPMethod(rawValue: request.method.rawValue),
            uri: request.uri.string, headers: headers)
        return Response(
            try await table.respond(
                to: GatewayRequest(head: head, body: .whole(body)), on: context.channel,
                as: reader, logger: context.logger))
    }

    /// Whoever reads on loopback without a token: it may see everything and do nothing, for it is
    /// believed with requests alone that read.
    private static var reader: VerifiedToken {
        VerifiedToken(
            issuer: "loopback", subject: "", app: VerifiedToken.everyApp,
            scopes: [.operate, .clientsWrite, .catalogWrite], expires: .max, kid: "")
    }
}

extension Response {
    /// An answer of a route of the TLS port.
    init(_ answer: GatewayAnswer) {
        var headers = HTTPFields()
        for field in answer.head.headers {
            if let name = HTTPField.Name(field.name) {
                headers.append(HTTPField(name: name, value: field.value))
            }
        }
        self.init(
            status: HTTPResponse.Status(code: Int(answer.head.status.code)), headers: headers,
            body: answer.body.map { ResponseBody(byteBuffer: $0) } ?? ResponseBody())
    }
}

extension HTTPField.Name {
    fileprivate static let secFetchSite = Self("Sec-Fetch-Site") ?? .origin
}
