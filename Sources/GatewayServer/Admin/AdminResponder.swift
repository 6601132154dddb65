import GatewaySigning
import Logging
import NIOCore
import NIOHTTP1
import WidgetModel

/// Responds to every request of the admin port: checks its access first, then leaves it to the
/// routes.
package struct AdminResponder: Sendable {
    let table: RouteTable
    let access: AdminAccess
    let authorizer: Authorizer

    /// Returns the response to a request. Throws only `CancellationError`.
    package func respond(
        to request: GatewayRequest, on channel: any Channel, logger: Logger
    ) async throws -> RouteResponse {
        let reader: VerifiedToken?
        do throws(ProblemDetails) {
            reader = try judge(request)
        } catch {
            return error.answer
        }
        return try await table.respond(to: request, on: channel, as: reader, logger: logger)
    }

    /// Returns the sender of a loopback request that reads without a token; `nil` for other
    /// permitted requests. Throws 401 and 403.
    private func judge(
        _ request: GatewayRequest
    ) throws(ProblemDetails) -> VerifiedToken? {
        let segments = PathSegments(request.head.uri)
        let path = table.route(of: segments)?.template ?? ""
        let verdict = access.judge(
            AdminAccess.Request(
                method: request.head.method.rawValue, path: path,
                host: request.header(FieldName.host), origin: request.header(FieldName.origin),
                site: request.header(FieldName.secFetchSite),
                hasAuthorization: request.header(FieldName.authorization) != nil),
            isStatic: StaticFiles.files[path] != nil)
        switch verdict {
        case .open: return nil
        case .reader: return Self.reader
        case .operators:
            try requireOperator(request, path, segments)
            return nil
        case .refused(let detail):
            throw Problem.forbidden("other-origin", detail)
        }
    }

    /// Requires a token of an operator, or to read also one with `operator:read`, for the path's app
    /// or, if the path has none, for every app.
    private func requireOperator(
        _ request: GatewayRequest, _ template: String, _ segments: PathSegments
    ) throws(ProblemDetails) {
        let token = try authorizer.token(
            request.header(FieldName.authorization), from: request.address, certificateURIs: { [] })
        let app =
            segments.begin(with: Self.appPath) ? segments.names(Self.appPath).first?.text : nil
        let isReading =
            [.GET, .HEAD].contains(request.head.method)
            || template == GatewayRoutes.explainChangesTemplate
        try authorizer.require(
            isReading ? .operatorRead : .operate, for: token,
            app: app?.percentDecoded ?? VerifiedToken.everyApp)
    }

    /// The beginning of every path that concerns one app.
    private static let appPath = GatewayRoute.path("/v1/apps/:app")

    /// The sender of loopback requests without a token: it may see everything but change nothing,
    /// because it is accepted only for requests that read.
    private static var reader: VerifiedToken {
        VerifiedToken(
            issuer: "loopback", subject: "", app: VerifiedToken.everyApp,
            scopes: [.operatorRead], expires: .max, kid: "")
    }
}
