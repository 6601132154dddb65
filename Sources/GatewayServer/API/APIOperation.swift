import GatewaySigning
import WidgetModel

/// What a route does, for those who call it: it stands beside the route, in the document at
/// `/openapi.json`, and is what the route is tested by.
///
/// A reference, so that looking for a route among others costs no more than its path.
final class APIOperation: Sendable {
    /// Who may call a route.
    enum Access: Sendable {
        /// Everybody.
        case anyone
        /// Who has one of these scopes.
        case scopes([Scope])
    }

    /// Names it in programs that are made from the document.
    let id: String
    let summary: String
    /// More than the summary says, in Markdown; empty where nothing is to be added.
    let details: String
    let access: Access
    /// Those of query and header; the path's own follow from the path.
    let parameters: [APIParameter]
    /// Schemas of the body by media type; empty where none is read.
    let body: APIContent
    /// What it answers when it does what it is asked.
    let answers: [APIAnswer]
    /// Why it may refuse, beyond what follows from its access and path.
    let refusals: Set<APIRefusal>

    init(
        _ id: String, _ summary: String, _ details: String = "", for access: Access,
        _ parameters: [APIParameter] = [], body: APIContent = [:], answers: [APIAnswer],
        refusals: Set<APIRefusal> = []
    ) {
        (self.id, self.summary, self.details) = (id, summary, details)
        (self.access, self.parameters, self.body) = (access, parameters, body)
        (self.answers, self.refusals) = (answers, refusals)
    }

    /// Whether everybody may call it.
    var isOpen: Bool {
        if case .anyone = access { true } else { false }
    }
}

/// A parameter of a query or a header.
struct APIParameter: Sendable {
    /// Where it stands.
    enum Place: String, Sendable {
        case path, query, header
    }

    let place: Place
    let name: String
    let schema: Schema
    let description: String

    /// A parameter of the query, which may be left out.
    static func query(_ name: String, _ schema: Schema, _ description: String) -> Self {
        Self(place: .query, name: name, schema: schema, description: description)
    }

    /// A header, which may be left out.
    static func header(_ name: String, _ schema: Schema, _ description: String) -> Self {
        Self(place: .header, name: name, schema: schema, description: description)
    }

    var json: JSONValue {
        [
            "name": .string(name), "in": .string(place.rawValue),
            "required": .bool(place == .path), "description": .string(description),
            "schema": schema.json,
        ]
    }
}

/// Schemas of a body by media type.
struct APIContent: Sendable, ExpressibleByDictionaryLiteral {
    let all: [(mediaType: String, schema: Schema)]

    init(dictionaryLiteral content: (String, Schema)...) {
        all = content.map { ($0.0, $0.1) }
    }

    /// `application/json` of this schema.
    static func json(_ schema: Schema) -> Self { ["application/json": schema] }

    var json: JSONValue {
        var object = JSONObject()
        for (mediaType, schema) in all { object[mediaType] = ["schema": schema.json] }
        return .object(object)
    }
}

/// An answer of a route that does what it is asked.
struct APIAnswer: Sendable {
    let status: Int
    let description: String
    var content: APIContent = [:]
    /// What headers beside those of every answer say, by name.
    var headers: KeyValuePairs<String, String> = [:]
    /// Those among them that not every such answer has.
    var optionalHeaders: Set<String> = []

    init(
        _ status: Int, _ description: String, _ content: APIContent = [:],
        headers: KeyValuePairs<String, String> = [:], optionalHeaders: Set<String> = []
    ) {
        (self.status, self.description, self.content) = (status, description, content)
        (self.headers, self.optionalHeaders) = (headers, optionalHeaders)
    }

    /// A header that keeps an answer from being stored.
    static let notStored: KeyValuePairs<String, String> = [
        FieldName.cacheControl: "`no-store`: it is of its moment."
    ]
}
