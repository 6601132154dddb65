import CatalogModel
import GatewayCore
import GatewayOperations
import GatewaySigning
import NIOHTTP1
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayServer

/// Checks `openapi.yaml` against routes, enumerations, problems and limits; `Deploy/check-api`
/// checks the answers of a running gateway against it.
@Suite struct OpenAPITests {
    typealias Port = OpenAPIDocument.Port

    static let ports: [Port] = [.tls, .admin(isLoopback: true), .admin(isLoopback: false)]

    private static func document(_ port: Port, limits: Limits = Limits()) -> JSONValue {
        OpenAPIDocument(of: port, limits: limits).json
    }

    /// Returns the operations of a port, each under `GET /path`.
    private static func operations(_ port: Port) -> [String: JSONValue] {
        var operations: [String: JSONValue] = [:]
        for path in document(port)["paths"]?.objectValue?.members ?? [] {
            for operation in path.value.objectValue?.members ?? [] {
                operations["\(operation.name.uppercased()) \(path.name)"] = operation.value
            }
        }
        return operations
    }

    private static func template(_ method: HTTPMethod, _ path: String) -> String {
        let route = GatewayRoute(method, path) { _, _ in throw CancellationError() }
        return "\(method.rawValue) \(route.template)"
    }

    @Test(arguments: ports) func `the document has every route of its port and no other`(port: Port)
    {
        var routes = GatewayRoutes.shared.map { Self.template($0.method, $0.path) }
        routes.append(Self.template(.GET, OpenAPIDocument.path))
        if port == .tls {
            routes.append(Self.template(.GET, GatewayRoutes.reloadsPath))
            routes.append(Self.template(.POST, GatewayRoutes.ticketsPath))
            routes.append(Self.template(.OPTIONS, GatewayRoutes.changesPath))
        } else {
            let own = (AdminRoutes.probes + AdminRoutes.pages).map(\.path)
            routes += (own + StaticFiles.files.keys).map { Self.template(.GET, $0) }
        }
        #expect(Set(routes).count == routes.count)
        #expect(Set(Self.operations(port).keys) == Set(routes))
    }

    @Test(arguments: ports) func `what a node may pass on may be answered 503`(port: Port) {
        for route in GatewayRoutes.shared where !GatewayRoutes.ownPaths.contains(route.path) {
            let operation = Self.operations(port)[Self.template(route.method, route.path)]
            #expect(operation?["responses", "503"] != nil, "\(route.path)")
        }
    }

    @Test(arguments: ports)
    func `an operation has the parameters of its path, and an id of its own`(
        port: Port
    ) {
        var ids: Set<String> = []
        for (route, operation) in Self.operations(port) {
            let names = route.split(separator: "/").filter { $0.hasPrefix("{") }
                .map { JSONValue.string(String($0.dropFirst().dropLast())) }
            let parameters = operation["parameters"]?.arrayValue ?? []
            let ofPath = parameters.filter { $0["in"] == "path" }
            #expect(ofPath.compactMap { $0["name"] } == names, "\(route)")
            #expect(parameters.allSatisfy { ($0["required"] == true) == ($0["in"] == "path") })
            let isNew = ids.insert(operation["operationId"]?.stringValue ?? "").inserted
            #expect(isNew, "\(route)")
            #expect(operation["summary"]?.stringValue?.isEmpty == false, "\(route)")
        }
    }

    @Test(arguments: ports)
    func `every reference leads somewhere, and every component is referred to`(
        port: Port
    ) {
        let document = Self.document(port)
        var references: Set<String> = []
        Self.visit(document) { value in
            if let reference = value["$ref"]?.stringValue { references.insert(reference) }
            #expect(value.stringValue?.hasPrefix("$") != true, "\(value)")
        }
        var components: Set<String> = []
        for kind in ["schemas", "responses", "headers"] {
            for component in document["components", kind]?.objectValue?.members ?? [] {
                components.insert("#/components/\(kind)/\(component.name)")
            }
        }
        #expect(references == components)
        #expect(document.objectValue?.members.contains { $0.name.hasPrefix("x-") } == false)
        #expect(document["info", "version"] == .string(productVersion))
    }

    private static func visit(_ value: JSONValue, _ body: (JSONValue) -> Void) {
        body(value)
        for member in value.objectValue?.members ?? [] { visit(member.value, body) }
        for element in value.arrayValue ?? [] { visit(element, body) }
    }

    @Test func `schemas of requests state the limits in force`() {
        var limits = Limits()
        limits.stringBytesMax = 11
        limits.catalogKindsMax = 12
        limits.postEventsMax = 13
        limits.registrationWidgetsMax = 14
        limits.clientKeysMax = 15
        let document = Self.document(.tls, limits: limits)
        let schemas = document["components", "schemas"]
        #expect(schemas?["Change", "properties", "entity", "maxLength"] == 11)
        #expect(schemas?["Catalog", "properties", "widgets", "maxItems"] == 12)
        #expect(
            document[
                "paths", "/v1/apps/{app}/changes", "post", "requestBody", "content",
                "application/cloudevents-batch+json", "schema", "maxItems"] == 13)
        #expect(schemas?["Registration", "properties", "widgets", "maxItems"] == 14)
        #expect(schemas?["Acknowledgement", "properties", "failed", "maxItems"] == 15)
        // These are not configurable; the document has them as numbers.
        let names = schemas?["Change", "properties", "attributes"]
        #expect(names?["maxProperties"] == .integer(Int64(limits.attributesMax)))
        #expect(schemas?["Registration", "properties", "delivery", "maxItems"] == .integer(8))
        #expect(limits.deliveriesMax == 8)
        #expect(schemas?["Catalog", "properties", "activities", "maxItems"] == 12)
        for name in ["activities", "activityStarts"] {
            let count = schemas?["Registration", "properties"]?[name, "maxItems"]
            #expect(count == .integer(Int64(limits.registrationActivitiesMax)))
        }
        let rule = schemas?["DependencyRule", "properties"]
        #expect(rule?["match", "maxProperties"] == .integer(Int64(limits.bindingsMax)))
        #expect(rule?["properties", "maxItems"] == .integer(Int64(limits.propertiesMax)))
        let wait = GatewayRoutes.waitSecondsMax
        let texts = "\(document.text)"
        #expect(texts.contains("for up to this many seconds, at most \(wait) "))
        #expect(texts.contains("at most \(GatewayRoutes.explainedEventsMax) changes per request"))
        #expect(texts.contains("\"maximum\":\(LocalIssuer.clientTokenSecondsMax)"))
        #expect(texts.contains("{1,\(Identifier.bytesMax)}"))
    }

    // MARK: Access

    @Test func `on the admin port a token needs the operator's scope besides the route's own`() {
        let reader: JSONValue = ["bearer": ["operator:read"]]
        for isLoopback in [true, false] {
            let operations = Self.operations(.admin(isLoopback: isLoopback))
            let client = "/v1/apps/{app}/clients/{client}"
            let own: [JSONValue] = [
                ["bearer": ["client", "operator"]], ["bearer": ["clients:write", "operator"]],
            ]
            #expect(operations["PUT \(client)"]?["security"] == .array(own))
            #expect(
                operations["GET \(client)"]?["security"]
                    == .array((isLoopback ? [[:]] : []) + [["bearer": ["operator"]], reader]))
            for (route, operation) in operations {
                let path = route.split(separator: " ")[1]
                let isFile = StaticFiles.files[String(path)] != nil
                let isOpen = isFile || ["/livez", "/readyz"].contains(path)
                let security = operation["security"]?.arrayValue ?? []
                let isReading = route.hasPrefix("GET ") || route.hasSuffix("/changes/explain")
                #expect(
                    security.contains([:])
                        == (isOpen || isLoopback && route.hasPrefix("GET ")), "\(route)")
                #expect(
                    security.allSatisfy {
                        let scopes = $0["bearer"]?.arrayValue ?? []
                        return $0 == [:] || scopes.contains("operator")
                            || isReading && scopes.contains("operator:read")
                    }, "\(route)")
                let statuses = operation["responses"]?.objectValue
                #expect((statuses?["401"] != nil) == !isOpen, "\(route)")
                #expect((statuses?["403"] != nil) == (isFile ? isLoopback : !isOpen), "\(route)")
                #expect(statuses?["429"] == nil, "\(route)")
            }
            #expect(operations["GET /openapi.json"]?["security"]?.arrayValue?.last == reader)
        }
    }

    @Test func `on the TLS port what needs a scope refuses, and everything is limited by rates`() {
        for (route, operation) in Self.operations(.tls) {
            let isOpen = operation["security"] == [[:]]
            let statuses = operation["responses"]?.objectValue
            #expect((statuses?["401"] != nil) == !isOpen, "\(route)")
            #expect((statuses?["403"] != nil) == !isOpen, "\(route)")
            #expect(statuses?["429"] != nil && statuses?["431"] != nil, "\(route)")
            for alternative in operation["security"]?.arrayValue ?? [] {
                for (_, scopes) in alternative.objectValue?.members.map({ ($0.name, $0.value) })
                    ?? []
                {
                    let names = scopes.arrayValue?.compactMap(\.stringValue) ?? []
                    #expect(names.count == 1 && names.allSatisfy { Scope(rawValue: $0) != nil })
                }
                // A certificate does not make its owner a client: its URI is not a client id.
                #expect(alternative["certificate"] != ["client"], "\(route)")
            }
        }
    }

    @Test func `every response of the admin port has the headers of the port`() {
        let document = Self.document(.admin(isLoopback: true))
        let headers = document["components", "headers"]?.objectValue?.members ?? []
        #expect(headers.map(\.name) == AdminHeaders.fields.map(\.name))
        for (name, value) in AdminHeaders.fields {
            #expect(
                document["components", "headers", name, "description"] == .string("`\(value)`"))
        }
        let responses =
            Self.operations(.admin(isLoopback: true)).values.map { $0["responses"] }
            + [document["components", "responses"]]
        for response in responses.flatMap({ $0?.objectValue?.members ?? [] })
        where response.value["$ref"] == nil {
            let names = response.value["headers"]?.objectValue?.members.map(\.name) ?? []
            #expect(Set(names).isSuperset(of: AdminHeaders.fields.map(\.name)))
        }
    }

    // MARK: Words

    @Test func `every enumeration of the document has the cases of the program's`() {
        let document = Self.document(.admin(isLoopback: true))
        let schemas = document["components", "schemas"]
        func words(_ path: String...) -> [String]? {
            let schema = path.reduce(schemas) { $0?[$1] }
            return (schema?["enum"] ?? schema)?.arrayValue?.compactMap(\.stringValue)
        }
        func all<Word: CaseIterable & RawRepresentable<String>>(_: Word.Type) -> [String] {
            Word.allCases.map(\.rawValue)
        }
        for schema in ["LoggedChange", "ExplainedChange"] {
            #expect(words(schema, "properties", "operation") == all(Change.Operation.self))
            #expect(words(schema, "properties", "urgency") == all(Urgency.self))
        }
        #expect(
            words("WidgetDeclaration", "properties", "configuration")
                == all(WidgetConfigurationType.self))
        #expect(words("Attempt", "properties", "outcome") == all(PushOutcome.self))
        #expect(words("Attempt", "properties", "cause") == all(PushCause.self))
        #expect(
            words("Attempt", "properties", "channel")
                == NotificationChannel.pushes.map(\.rawValue))
        #expect(words("Event", "properties", "event") == all(PushAlert.self))
        #expect(
            words("Holders", "properties", "channels", "propertyNames")
                == all(NotificationChannel.self))
        #expect(
            words("Outcomes", "properties", "withheldFor", "items", "properties", "reason")
                == all(Outcome.Reason.self))
        #expect(
            words("Outcomes", "properties", "unreachableFor", "propertyNames")
                == all(Outcome.Absence.self))
        for schema in ["WidgetStanding", "SetStanding", "ControlStanding", "ActivityStanding"] {
            #expect(
                words(schema, "properties", "reason")
                    == all(Outcome.Reason.self) + all(Outcome.Absence.self))
            #expect(words(schema, "properties", "channel") == all(NotificationChannel.self))
        }
        #expect(
            words("ConsideredRule", "properties", "target")
                == [Target.timeline, .recommendations, .relevance, .control, .activity].map(\.name))
        #expect(
            words("Overview", "properties", "sent", "propertyNames") == all(DeliveryChannel.self))
        #expect(words("Trouble", "properties", "level") == ["critical", "warning"])
        let probes = document["paths", "/livez", "get", "responses", "200", "content"]
        #expect(
            probes?[
                "application/json", "schema", "properties", "failing", "items", "enum"]
                == .array(Health.Part.allCases.map { .string($0.rawValue) }))
    }

    /// Returns the last parts of the `type` URIs of a response among the components.
    private static func codes(_ response: JSONValue) -> [String] {
        let type = response[
            "content", ProblemDetails.mediaType, "schema", "properties", "type"]
        let words = type?["enum"]?.arrayValue ?? [type?["const"]].compactMap { $0 }
        return words.compactMap(\.stringValue).map {
            String($0.dropFirst(ProblemDetails.typePrefix.count))
        }
    }

    @Test func `every problem is one that its status may have`() {
        var codes: [Int: [String]] = [:]
        let responses = Self.document(.tls)["components", "responses"]?.objectValue?.members ?? []
        for response in responses {
            let schema = response.value["content", ProblemDetails.mediaType, "schema"]
            let status = schema?["properties", "status", "minimum"]?.integerValue ?? 0
            #expect(schema?["properties", "status", "maximum"] == .integer(status))
            codes[Int(status)] = Self.codes(response.value)
        }
        let problems = [
            Problem.malformed(""), Problem.unknownApp, Problem.unknownClient,
            Problem.unknownChange, Problem.notAcceptable(""), Problem.engine(.preconditionFailed),
            Problem.tooLarge(""), Problem.unsupportedMediaType(""),
            Problem.unsupportedContentEncoding(""), Problem.wrong(Faults()),
            Problem.eventIDReused(Faults()), Problem.tooManyStreams, Problem.headersTooLarge,
            Problem.unavailable(""), Problem.engine(.quota(.tooManyClients(limit: 1))),
            Problem.engine(.quota(.logFull(used: 1, adding: 1, limit: 1))),
            Problem.engine(.quota(.tooManyStarts(limit: 1))), Problem.engine(.channelService("")),
            Problem.engine(.quota(.exceedsLog(adding: 2, limit: 1))),
        ]
        for problem in problems {
            #expect(codes[problem.status]?.contains(problem.code) == true, "\(problem.code)")
        }
        let tokens = TokenRejection.allCases
        #expect(
            codes[401]
                == ["token-missing", "token-revoked", Problem.ticketInvalid.code]
                + tokens.filter(\.isInvalidToken).map(\.code))
        #expect(
            codes[403]?.suffix(from: 8) == tokens.filter { !$0.isInvalidToken }.map(\.code)[...])
        let all = codes.values.joined()
        #expect(Set(all).count == all.count)
    }
}
