import WidgetModel

/// A route of the gateway, as its OpenAPI document names it.
struct Route: Hashable, Comparable, CustomStringConvertible {
    /// The method, in capitals.
    let method: String
    /// The path, with names in braces.
    let path: String

    init(_ method: String, _ path: String) { (self.method, self.path) = (method, path) }

    var description: String { "\(method) \(path)" }

    static func < (left: Route, right: Route) -> Bool {
        (left.path, left.method) < (right.path, right.method)
    }
}

/// The shapes that reached each route.
struct RouteCoverage {
    /// The routes of the gateway, sorted.
    let routes: [Route]
    /// The routes that have to be reached, sorted: those that accept a document, and those that make
    /// one from the data of apps and clients.
    let required: [Route]
    /// The shapes that reached each route, in their order.
    private(set) var shapes: [Route: [String]] = [:]

    /// Reads the gateway's OpenAPI document; `nil` where that names no routes.
    init?(openAPI document: JSONValue) {
        guard let paths = document.objectValue?["paths"]?.objectValue else { return nil }
        var (routes, required): ([Route], [Route]) = ([], [])
        for path in paths.members {
            for operation in path.value.objectValue?.members ?? [] {
                let route = Route(operation.name.uppercased(), path.name)
                let takesDocument = operation.value.objectValue?["requestBody"] != nil
                routes.append(route)
                if takesDocument || (route.method == "GET" && path.name.hasPrefix("/v1/")) {
                    required.append(route)
                }
            }
        }
        guard !routes.isEmpty else { return nil }
        (self.routes, self.required) = (routes.sorted(), required.sorted())
    }

    /// Records that a shape reached a route.
    mutating func note(_ route: Route, by shape: String) {
        if shapes[route]?.contains(shape) != true { shapes[route, default: []].append(shape) }
    }

    /// The routes that had to be reached and were not.
    var unreached: [Route] { required.filter { shapes[$0] == nil } }
}
