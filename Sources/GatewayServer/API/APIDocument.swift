import GatewaySigning
import WidgetModel

/// The OpenAPI 3.1 document of a port: what its routes say of themselves, and what holds for all.
struct APIDocument: Sendable {
    /// A port.
    enum Port: Sendable, Equatable {
        /// For backends and clients.
        case tls
        /// For operators.
        case admin(isLoopback: Bool)
    }

    /// A route, as the document has it.
    struct Route: Sendable {
        let method: String
        /// With names in braces.
        let path: String
        let operation: APIOperation
        /// Only the admin port has it.
        var isAdmin = false
    }

    /// Where it is.
    static let path = "/openapi.json"

    /// The document as it is sent.
    let bytes: [UInt8]

    init(_ routes: [Route], of port: Port) {
        var named: [String: JSONValue] = [:]
        var paths = JSONObject()
        var refusals: Set<APIRefusal> = []
        for route in routes {
            let entry = APIEntry(route, port)
            var methods = paths[route.path]?.objectValue ?? JSONObject()
            methods[route.method.lowercased()] = entry.json
            paths[route.path] = .object(methods)
            for schema in entry.schemas { Schema.add(schema.named, to: &named) }
            refusals.formUnion(entry.refusals)
        }
        var responses = JSONObject()
        for refusal in refusals.sorted(by: { $0.rawValue < $1.rawValue }) {
            responses[refusal.name] = APIEntry.json(refusal.answer, port)
            for content in refusal.answer.content.all {
                Schema.add(content.schema.named, to: &named)
            }
        }
        var schemas = JSONObject()
        for (name, schema) in named.sorted(by: { $0.key < $1.key }) { schemas[name] = schema }
        var components: JSONObject = [
            "schemas": .object(schemas), "responses": .object(responses),
            "securitySchemes": port.securitySchemes,
        ]
        if port != .tls { components["headers"] = APIEntry.adminHeaders }
        let document: JSONValue = [
            "openapi": "3.1.0",
            "info": [
                "title": .string(port.title), "version": .string(productVersion),
                "summary": "Tells widgets and complications when to rebuild.",
                "description": .string(port.description),
            ],
            "paths": .object(paths), "components": .object(components),
        ]
        bytes = document.serialized
    }

    /// What the route of the document says of itself.
    static func operation(for access: APIOperation.Access) -> APIOperation {
        APIOperation(
            "getOpenAPI", "Read what this port answers", for: access,
            answers: [APIAnswer(200, "This document: OpenAPI 3.1.", .json(.anything))])
    }
}

extension APIDocument.Port {
    fileprivate var title: String {
        self == .tls ? "Timeline Gateway" : "Timeline Gateway, admin port"
    }

    fileprivate var description: String {
        var text = """
            Errors are `application/problem+json` (RFC 9457), whose `type` is stable. Where there is \
            nothing at a path the answer is 404 `not-found`; a path that does not take a method \
            answers 405 `method-not-allowed` with `Allow`. In documents that the gateway reads, a \
            member that is `null` counts as absent. Lengths of texts are bounded in bytes of UTF-8. \
            Requests of backends and operators may say by `traceparent` (W3C Trace Context) of which \
            trace they are.
            """
        if case .admin(let isLoopback) = self {
            text += "\n\n"
            text +=
                isLoopback
                ? "On loopback everybody reads; acting takes the token of an operator. A request names "
                    + "the port by a name of this machine, and a page of another origin is refused."
                : "All but probes and the dashboard's files takes the token of an operator: of every "
                    + "app, or, for routes of one app, of that app."
            text +=
                " Routes of the TLS port are here too, but for streams and polls; there the token "
                + "needs the route's own scope besides."
        }
        return text
    }

    fileprivate var securitySchemes: JSONValue {
        var schemes: JSONObject = [
            "bearer": [
                "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
                "description":
                    "A JWT of an issuer that the configuration names (RFC 6750), with these scopes.",
            ]
        ]
        if self == .tls {
            schemes["certificate"] = [
                "type": "mutualTLS",
                "description":
                    "A client certificate to whose URI the configuration gives these scopes.",
            ]
        }
        return .object(schemes)
    }
}
