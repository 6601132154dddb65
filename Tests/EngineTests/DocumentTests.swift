import GatewayDocuments
import Testing
import WidgetModel

@testable import GatewayServer

/// Checks the types of documents against their schemas: every value that a schema describes is
/// decoded into the type and encoded from it again.
@Suite struct DocumentTests {
    private static let document = OpenAPIDocument(of: .admin(isLoopback: true), limits: Limits())
        .json

    private static var types: [(operation: String, type: any Codable.Type)] {
        [
            ("explainChange", ExplainedChange.self), ("explainChanges", ExplainedEvents.self),
            ("explainClient", ExplainedClient.self), ("compareCatalog", CatalogDifference.self),
            ("listChanges", ChangePage.self), ("listAttempts", AttemptPage.self),
            ("listEvents", PushEvents.self), ("getOverview", Overview.self),
            ("getApps", AppList.self), ("getSystem", SystemStatus.self),
            ("getVersion", JSONMap<String>.self), ("getLiveness", HealthStatus.self),
            ("getReadiness", HealthStatus.self), ("putCatalog", CatalogTaken.self),
            ("postChanges", ChangesTaken.self), ("postReload", ReloadTaken.self),
            ("putClient", Registered.self), ("patchClient", Registered.self),
            ("getClient", RegisteredClient.self), ("listClients", ClientPage.self),
            ("eraseClients", ErasedClients.self), ("deleteApp", RemovedApp.self),
            ("postPush", PushesTaken.self), ("postToken", IssuedToken.self),
        ]
    }

    /// Returns the schema of an operation's successful response.
    private static func schema(_ id: String) -> JSONValue? {
        for path in document["paths"]?.objectValue?.members ?? [] {
            for operation in path.value.objectValue?.members ?? []
            where operation.value["operationId"] == .string(id) {
                return ["200", "201", "202"].compactMap { status in
                    operation.value[
                        "responses", status, "content", "application/json", "schema"]
                }.first
            }
        }
        return nil
    }

    @Test func `every member of a schema is one of its document, and the other way round`() throws {
        var members = Members()
        for (operation, type) in Self.types {
            let schema = try #require(Self.schema(operation), "\(operation)")
            for sample in samples(of: schema) {
                let read = try type.init(decoding: sample)
                #expect(try JSONValue(encoding: read).sorted == sample.sorted, "\(operation)")
                members.note(read)
            }
        }
        #expect(members.neverSet == [])
        #expect(members.all.count > 100)
    }

    @Test func `an option has values, or else contents`() throws {
        let values: JSONValue = [
            "option": "threads", "takesEffect": "now", "before": nil, "after": "2",
        ]
        let contents: JSONValue = [
            "option": "tls.key", "takesEffect": "now", "contents": "changed",
        ]
        for sample in [values, contents] {
            let read = try ChangedOption(decoding: sample)
            #expect(try JSONValue(encoding: read) == sample)
        }
        let schema = Self.document["components", "schemas", "ConfigurationChange", "properties"]
        #expect(
            schema?.objectValue?.members.map(\.name)
                == ["option", "takesEffect", "contents", "before", "after"])
    }

    /// Returns values that a schema describes, together with all of its members and alternatives.
    private func samples(of schema: JSONValue) -> [JSONValue] {
        if let reference = schema["$ref"]?.stringValue {
            let target = reference.split(separator: "/").dropFirst().reduce(Self.document) {
                $0.objectValue?[String($1)] ?? .null
            }
            return samples(of: target)
        }
        if let alternatives = schema["anyOf"]?.arrayValue {
            return alternatives.flatMap(samples)
        }
        if let value = schema["const"] ?? schema["enum"]?.arrayValue?.first { return [value] }
        let types = schema["type"]?.arrayValue ?? [schema["type"] ?? .null]
        let type = types.first { $0 != "null" }?.stringValue
        return switch type {
        case "object": objects(of: schema)
        case "array": [.array(samples(of: schema["items"] ?? [:]))]
        case "string": ["text"]
        case "integer": [7]
        case "number": [.number(1.5)]
        case "boolean": [true]
        default: ["anything"]
        }
    }

    private func objects(of schema: JSONValue) -> [JSONValue] {
        var object = JSONObject()
        for member in schema["properties"]?.objectValue?.members ?? [] {
            object[member.name] = samples(of: member.value).first
        }
        if let more = schema["additionalProperties"], more.objectValue != nil {
            let name = schema["propertyNames", "enum"]?.arrayValue?.first?.stringValue
            object[name ?? "name"] = samples(of: more).first
        }
        return [.object(object)]
    }

    /// The members of structures that occurred, by type.
    private struct Members {
        var all: Set<String> = []
        private var set: Set<String> = []

        var neverSet: [String] { all.subtracting(set).sorted() }

        mutating func note(_ value: Any) {
            guard !(value is JSONValue) else { return }
            let mirror = Mirror(reflecting: value)
            for child in mirror.children {
                if mirror.displayStyle == .struct, let label = child.label {
                    let name = "\(mirror.subjectType).\(label)"
                    all.insert(name)
                    let inner = Mirror(reflecting: child.value)
                    if inner.displayStyle != .optional || !inner.children.isEmpty {
                        set.insert(name)
                    }
                }
                note(child.value)
            }
        }
    }
}

extension JSONValue {
    /// The value at this path of member names.
    subscript(_ names: String...) -> JSONValue? {
        names.reduce(self) { $0?.objectValue?[$1] }
    }

    /// The value with its members sorted by name.
    fileprivate var sorted: JSONValue {
        switch self {
        case .object(let object):
            var sorted = JSONObject()
            for member in object.members.sorted(by: { $0.name < $1.name }) {
                sorted[member.name] = member.value.sorted
            }
            return .object(sorted)
        case .array(let elements): return .array(elements.map(\.sorted))
        default: return self
        }
    }
}
