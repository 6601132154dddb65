import HTTPTypes
import Hummingbird
import NIOHTTP1
import WidgetModel

/// One route of the admin port's own; all of them read.
struct AdminRoute: Sendable {
    typealias Handler = @Sendable (Request) async throws -> Response

    /// Without names.
    let path: String
    let operation: APIOperation
    let handler: Handler

    init(_ path: String, _ operation: APIOperation, _ handler: @escaping Handler) {
        (self.path, self.operation, self.handler) = (path, operation, handler)
    }

    /// The route as a document has it.
    var described: APIDocument.Route {
        APIDocument.Route(method: "GET", path: path, operation: operation, isAdmin: true)
    }
}

/// The admin port's own routes: finds the one a request is for.
struct AdminTable: HTTPResponder {
    private let routes: [String: AdminRoute]

    init(_ routes: [AdminRoute]) {
        self.routes = Dictionary(routes.map { ($0.path, $0) }) { first, _ in first }
    }

    func respond(to request: Request, context: AdminContext) async throws -> Response {
        guard let route = routes[request.uri.path] else {
            return Response(Problem.noSuchRoute.answer)
        }
        guard request.method == .get else {
            var answer = Problem.methodNotAllowed("GET").answer
            answer.head.headers.add(name: FieldName.allow, value: "GET")
            return Response(answer)
        }
        return try await route.handler(request)
    }
}
