import GatewaySigning
import HTTPTypes
import WidgetModel

/// A route as one port answers it.
struct APIEntry {
    let route: APIDocument.Route
    let port: APIDocument.Port

    init(_ route: APIDocument.Route, _ port: APIDocument.Port) {
        (self.route, self.port) = (route, port)
    }

    private var operation: APIOperation { route.operation }
    private var reads: Bool { route.method == "GET" }

    /// The path's own parameters, and those of query and header.
    private var parameters: [APIParameter] {
        let names = route.path.split(separator: "/").filter { $0.hasPrefix("{") }
            .map { String($0.dropFirst().dropLast()) }
        return names.map { name in
            let schema: Schema =
                switch name {
                case "app": .app
                case "client": .client
                default: .integer(0...)
                }
            return APIParameter(
                place: .path, name: name, schema: schema,
                description: schema.keywords["description"]?.stringValue ?? "Of the log.")
        } + operation.parameters
    }

    /// Every schema that it refers to.
    var schemas: [Schema] {
        parameters.map(\.schema) + operation.body.all.map(\.schema)
            + operation.answers.flatMap { $0.content.all.map(\.schema) }
    }

    /// Why it may refuse.
    var refusals: Set<APIRefusal> {
        var refusals = operation.refusals
        if parameters.contains(where: { $0.place == .path }) {
            refusals.formUnion([.malformed, .wrong])
        }
        if case .scopes = operation.access { refusals.formUnion([.unauthorized, .forbidden]) }
        switch port {
        case .tls:
            refusals.formUnion([.malformed, .tooMany, .headersTooLarge])
            // The bytes of bodies in work are limited.
            if !operation.body.all.isEmpty { refusals.insert(.unavailable) }
        case .admin:
            // What is open to everybody here is told everybody, whatever they send.
            if !(route.isAdmin && operation.isOpen) {
                refusals.formUnion([.unauthorized, .forbidden])
            }
            if !reads { refusals.insert(.tooLarge) }
        }
        return refusals
    }

    private var security: [JSONValue] {
        var scopes: [Scope] = []
        if case .scopes(let some) = operation.access { scopes = some }
        switch port {
        case .tls:
            guard !scopes.isEmpty else { return [[:]] }
            // A certificate's URI is no client's id.
            let granted = scopes.filter { $0 != .client }
            return scopes.map { ["bearer": [.string($0.rawValue)]] }
                + granted.map { ["certificate": [.string($0.rawValue)]] }
        case .admin(let isLoopback):
            if route.isAdmin, operation.isOpen { return [[:]] }
            let operators = (scopes.isEmpty ? [.operate] : scopes).map { scope -> JSONValue in
                let needed: Set<Scope> = [.operate, scope]
                return ["bearer": .array(needed.map(\.rawValue).sorted().map { .string($0) })]
            }
            return isLoopback && reads ? [[:]] + operators : operators
        }
    }

    var json: JSONValue {
        var object: JSONObject = [
            "operationId": .string(operation.id), "summary": .string(operation.summary),
        ]
        if !operation.details.isEmpty { object["description"] = .string(operation.details) }
        object["security"] = .array(security)
        if !parameters.isEmpty { object["parameters"] = .array(parameters.map(\.json)) }
        if !operation.body.all.isEmpty {
            object["requestBody"] = ["required": true, "content": operation.body.json]
        }
        var responses = JSONObject()
        for answer in operation.answers {
            responses[String(answer.status)] = Self.json(answer, port)
        }
        for refusal in refusals.sorted(by: { $0.rawValue < $1.rawValue })
        where responses[String(refusal.rawValue)] == nil {
            responses[String(refusal.rawValue)] = [
                "$ref": .string("#/components/responses/" + refusal.name)
            ]
        }
        object["responses"] = .object(responses)
        return .object(object)
    }

    /// An answer, with the headers that every answer of the port has.
    static func json(_ answer: APIAnswer, _ port: APIDocument.Port) -> JSONValue {
        var headers = JSONObject()
        for (name, description) in answer.headers {
            headers[name] = header(
                description, isRequired: !answer.optionalHeaders.contains(name))
        }
        if case .admin = port {
            for (name, _) in AdminHeaders.fields where headers[name.rawName] == nil {
                headers[name.rawName] = ["$ref": .string("#/components/headers/" + name.rawName)]
            }
        }
        var object: JSONObject = ["description": .string(answer.description)]
        if !headers.members.isEmpty { object["headers"] = .object(headers) }
        if !answer.content.all.isEmpty { object["content"] = answer.content.json }
        return .object(object)
    }

    /// The headers that every answer of the admin port has, by name.
    static var adminHeaders: JSONValue {
        var headers = JSONObject()
        for (name, value) in AdminHeaders.fields {
            headers[name.rawName] = header("`\(value)`", isRequired: true)
        }
        return .object(headers)
    }

    private static func header(_ description: String, isRequired: Bool) -> JSONValue {
        [
            "required": .bool(isRequired), "description": .string(description),
            "schema": Schema.text.json,
        ]
    }
}
