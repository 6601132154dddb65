import CatalogModel
import WidgetModel

/// The OpenAPI document of a port, made from `openapi.yaml`.
package struct OpenAPIDocument: Sendable {
    /// A port that serves its own document.
    package enum Port: Sendable, Equatable {
        /// The port for backends and clients.
        case tls
        /// The port for operators.
        case admin(isLoopback: Bool)
    }

    /// The path of the document on both ports.
    package static let path = "/openapi.json"

    package let json: JSONValue

    /// Creates the document of a port; `limits` are stated in schemas of requests.
    package init(of port: Port, limits: Limits) {
        var document = Self.source(limits)
        let patches = ["x-admin", "x-loopback", "x-shared"].map { name in
            defer { document[name] = nil }
            return document[name] ?? [:]
        }
        guard case .admin(let isLoopback) = port else {
            json = .object(document)
            return
        }
        document.changeOperations { method, operation in
            operation.requireOperator(isGet: method == "get")
        }
        document = JSONValue.object(document).merging(patch: patches[0]).objectValue ?? document
        document.changeOperations { method, operation in
            operation.change("responses") { $0.changeAll { $0.addAdminHeaders() } }
            if isLoopback, method == "get" { operation.allowWithoutToken() }
        }
        document.change("components") { components in
            components.change("responses") { $0.changeAll { $0.addAdminHeaders() } }
        }
        json =
            isLoopback
            ? JSONValue.object(document).merging(patch: patches[1]) : .object(document)
    }

    /// Returns the text of `openapi.yaml` with its placeholders replaced.
    private static func source(_ limits: Limits) -> JSONObject {
        let values: [String: JSONValue] = [
            "$version": .string(productVersion),
            "$stringBytes": .integer(Int64(limits.stringBytesMax)),
            "$catalogKinds": .integer(Int64(limits.catalogKindsMax)),
            "$postEvents": .integer(Int64(limits.postEventsMax)),
            "$registrationWidgets": .integer(Int64(limits.registrationWidgetsMax)),
            "$clientKeys": .integer(Int64(limits.clientKeysMax)),
        ]
        let text = String(decoding: PackageResources.openapi_yaml, as: UTF8.self)
        do {
            return try JSONValue(yaml: text).replacingStrings(by: values).objectValue ?? [:]
        } catch {
            preconditionFailure("openapi.yaml: \(error)")
        }
    }
}

extension JSONValue {
    fileprivate func replacingStrings(by values: [String: JSONValue]) -> JSONValue {
        switch self {
        case .string(let text): return values[text] ?? self
        case .array(let elements): return .array(elements.map { $0.replacingStrings(by: values) })
        case .object(var object):
            for member in object.members {
                object[member.name] = member.value.replacingStrings(by: values)
            }
            return .object(object)
        default: return self
        }
    }
}

extension JSONObject {
    fileprivate mutating func change(_ name: String, _ change: (inout JSONObject) -> Void) {
        guard var object = self[name]?.objectValue else { return }
        change(&object)
        self[name] = .object(object)
    }

    fileprivate mutating func changeAll(_ change: (inout JSONObject) -> Void) {
        for member in members { self.change(member.name, change) }
    }

    fileprivate mutating func changeOperations(
        _ change: (_ method: String, inout JSONObject) -> Void
    ) {
        self.change("paths") { paths in
            paths.changeAll { operations in
                for method in operations.members.map(\.name) {
                    operations.change(method) { change(method, &$0) }
                }
            }
        }
    }

    /// Adapts an operation of the TLS port to the admin port: rates are not limited, and the token
    /// needs a scope of operators in addition to the route's own.
    fileprivate mutating func requireOperator(isGet: Bool) {
        change("responses") { $0["429"] = nil }
        let own = (self["security"]?.arrayValue ?? []).compactMap {
            $0.objectValue?["bearer"]?.arrayValue.map { Set($0.compactMap(\.stringValue)) }
        }
        let isReading = isGet || own.contains(["operator:read"])
        let operators = isReading ? ["operator", "operator:read"] : ["operator"]
        // A route that one of these scopes suffices for needs no other.
        let sufficient = operators.filter { own.contains([$0]) }
        let alternatives =
            sufficient.isEmpty
            ? own.flatMap { scopes in operators.map { scopes.union([$0]) } }
            : sufficient.map { [$0] }
        self["security"] = .array(
            alternatives.map { ["bearer": .array($0.sorted().map { .string($0) })] })
    }

    /// Adds that the operation needs no token.
    fileprivate mutating func allowWithoutToken() {
        let alternatives = self["security"]?.arrayValue ?? []
        if !alternatives.contains([:]) { self["security"] = .array([[:]] + alternatives) }
    }

    /// Adds the headers common to all responses of the admin port, unless the response has its own.
    fileprivate mutating func addAdminHeaders() {
        guard self["$ref"] == nil else { return }
        var headers = self["headers"]?.objectValue ?? [:]
        for (name, _) in AdminHeaders.fields where headers[name] == nil {
            headers[name] = ["$ref": .string("#/components/headers/" + name)]
        }
        self["headers"] = .object(headers)
    }
}
