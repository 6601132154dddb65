import GatewayCore
import GatewaySigning
import NIOHTTP1
import Testing
import WidgetModel

@testable import GatewayServer

/// What routes say of themselves; `Deploy/check-api` holds the running gateway against it.
@Suite struct APIDocumentTests {
    private static let part = Schema.answer(["place": .text]).named("Part")

    private static func routes() -> [APIDocument.Route] {
        let operation = APIOperation(
            "putThing", "Put a thing", for: .scopes([.client, .changesWrite]),
            [.query("limit", .integer(1...5), "How many.")],
            body: .json(.request(["part": part.optional, "name": .name(3)])),
            answers: [
                APIAnswer(200, "It is there.", .json(.list(part)), headers: ["ETag": "Its."])
            ],
            refusals: [.tooMany])
        let open = APIOperation(
            "getThing", "Read it", for: .anyone, answers: [APIAnswer(204, "Nothing.")])
        return [
            GatewayRoute(.PUT, "/things/:app", operation) { _, _ in throw CancellationError() },
            GatewayRoute(.GET, "/things/:app", open) { _, _ in throw CancellationError() },
        ].map(\.described)
    }

    private func document(_ port: APIDocument.Port) throws -> JSONValue {
        try JSONValue(parsing: APIDocument(Self.routes(), of: port).bytes)
    }

    @Test func `an answer has no other members than its schema's, a request may`() throws {
        let members: Schema.Members = ["a": .text, "b": Schema.count.optional]
        let answer = Schema.answer(members).json
        #expect(answer["additionalProperties"] == false && answer["required"] == ["a"])
        #expect(answer["properties", "b", "type"] == "integer")
        let request = Schema.request(members).json
        #expect(request["additionalProperties"] == nil && request["required"] == ["a"])
        // What is null counts as absent, where it may be absent.
        #expect(request["properties", "a", "type"] == "string")
        #expect(request["properties", "b", "type"] == ["integer", "null"])
        #expect(Schema.request(members, isClosed: true).json["additionalProperties"] == false)
    }

    @Test func `a schema that has a name stands once, and is referred to from everywhere`() throws {
        let document = try document(.tls)
        let reference: JSONValue = "#/components/schemas/Part"
        let put = try #require(document["paths", "/things/{app}", "put"])
        #expect(
            put["responses", "200", "content", "application/json", "schema", "items", "$ref"]
                == reference)
        #expect(
            put["requestBody", "content", "application/json", "schema", "properties", "part"]
                == ["anyOf": [["$ref": reference], ["type": "null"]]])
        #expect(document["components", "schemas", "Part", "required"] == ["place"])
    }

    @Test func `what follows from path and access need not be said`() throws {
        let paths = try #require(document(.tls)["paths", "/things/{app}"])
        let statuses = { (method: String) in
            paths[method, "responses"]?.objectValue?.members.map(\.name)
        }
        #expect(statuses("put") == ["200", "400", "401", "403", "422", "429", "431", "503"])
        #expect(statuses("get") == ["204", "400", "422", "429", "431"])
        let parameters = try #require(paths["put", "parameters"]?.arrayValue)
        #expect(parameters.map { $0["name"] } == ["app", "limit"])
        #expect(parameters.map { $0["required"] } == [true, false])
        // A client's certificate is no client: its URI is not its id.
        #expect(
            paths["put", "security"] == [
                ["bearer": ["client"]], ["bearer": ["changes:write"]],
                ["certificate": ["changes:write"]],
            ])
        #expect(paths["get", "security"] == [[:]])
    }

    @Test func `on the admin port readers of loopback need no token, and others an operator's`()
        throws
    {
        let operators: JSONValue = ["bearer": ["operator"]]
        for isLoopback in [true, false] {
            let paths = try #require(
                document(.admin(isLoopback: isLoopback))["paths", "/things/{app}"])
            #expect(paths["get", "security"] == (isLoopback ? [[:], operators] : [operators]))
            #expect(
                paths["put", "security"] == [
                    ["bearer": ["client", "operator"]], ["bearer": ["changes:write", "operator"]],
                ])
            #expect(paths["put", "responses", "413"] != nil)
            #expect(
                paths["get", "responses", "204", "headers", "Referrer-Policy", "$ref"]
                    == "#/components/headers/Referrer-Policy")
        }
    }

    @Test func `every problem is one that its status may have`() {
        let problems = [
            Problem.malformed(""), Problem.unknownApp, Problem.unknownClient,
            Problem.unknownChange, Problem.notAcceptable(""), Problem.preconditionFailed,
            Problem.tooLarge(""), Problem.unsupportedMediaType(""), Problem.wrong(Faults()),
            Problem.eventIDReused(Faults()), Problem.tooManyStreams, Problem.headersTooLarge,
            Problem.unavailable(""), Problem.quota(.tooManyClients(limit: 1)),
            Problem.quota(.logFull(used: 1, adding: 1, limit: 1)),
            Problem.quota(.exceedsLog(adding: 2, limit: 1)),
        ]
        for problem in problems {
            #expect(APIRefusal(rawValue: problem.status)?.codes.contains(problem.code) == true)
        }
        let codes = APIRefusal.allCases.flatMap(\.codes)
        #expect(Set(codes).count == codes.count)
        #expect(Set(APIRefusal.allCases.map(\.name)).count == APIRefusal.allCases.count)
    }
}

extension JSONValue {
    /// What is at the end of these members.
    fileprivate subscript(_ names: String...) -> JSONValue? {
        names.reduce(self) { $0?.objectValue?[$1] }
    }
}
