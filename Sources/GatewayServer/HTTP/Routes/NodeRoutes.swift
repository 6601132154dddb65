import GatewayCore
import GatewayDocuments
import GatewayEngine
import GatewaySigning
import Logging
import NIOCore
import NIOHTTP1
import WidgetModel

/// Several gateways that share a log: what one passes on to the one that leads, and the routes of the
/// port that only they can reach.
extension GatewayRoutes {
    /// The route by which the leader applies the attributes of a client's token, for another node.
    package static let attributesPath = "/nodes/apps/:app/clients/:client/attributes"
    /// The route by which the leader asks for the streams of clients.
    package static let streamsPath = "/nodes/streams"
    /// The route by which a node reports its clients to the leader.
    package static let contactsPath = "/nodes/contacts"

    /// Returns the handler of a route that passes requests on while another gateway leads.
    func passing(
        _ path: String, _ handler: @escaping GatewayRoute.Handler
    ) -> GatewayRoute.Handler {
        guard let leader = engine.leader, !Self.ownPaths.contains(path) else { return handler }
        let bytesMax = max(limits.postBytesMax, limits.catalogBytesMax)
        return { request, context in
            guard !leader.isHere else { return try await handler(request, context) }
            let token = try await token(request, context)
            let body = try await request.bytes(upTo: bytesMax)
            return try await pass(request, from: token, body: body, to: leader)
        }
    }

    /// Has a request answered by the gateway that leads. Waits until what it wrote is in force here,
    /// too, unless it is a change: the answer stays true if that cannot be known now.
    func pass(
        _ request: GatewayRequest, from token: VerifiedToken, body: [UInt8],
        to leader: any LogLeader
    ) async throws -> RouteResponse {
        var fields = request.head.headers.filter { !Self.unpassed.contains($0.name.lowercased()) }
            .map { (name: $0.name, value: $0.value) }
        fields.append((FieldName.timelineSender, try token.passed()))
        // The connection omits the body of an answer to HEAD.
        let method = request.head.method == .HEAD ? .GET : request.head.method
        let answer = try await leader.pass(
            PassedRequest(method.rawValue, request.head.uri, fields: fields, body: body))
        let isLogged = method == .POST && !request.head.uri.hasSuffix("/acks")
        if method != .GET, !isLogged, answer.status < 300 { try? await leader.barrier() }
        var headers = HTTPHeaders()
        for (name, value) in answer.fields where !Self.unpassed.contains(name) {
            headers.add(name: name, value: value)
        }
        return RouteResponse(
            HTTPResponseStatus(statusCode: answer.status), headers: headers,
            body: answer.body.isEmpty ? nil : ByteBuffer(bytes: answer.body))
    }

    /// The fields of a message that concern its connection, or are stated anew.
    private static let unpassed: Set = [
        "authorization", "connection", "content-length", "date", "expect", "forwarded", "host",
        "keep-alive", "proxy-connection", "te", "timeline-sender", "trailer", "transfer-encoding",
        "upgrade",
    ]

    /// The table of the port for other nodes. `note` records the contacts of another node's
    /// clients.
    package func nodeTable(
        note: @escaping @Sendable (_ node: String, _ contacts: JSONValue) throws -> Void
    ) -> RouteTable {
        let passed = Self.shared.map { route in
            let handler = route.handler(self)
            return GatewayRoute(route.method, route.path) { request, context in
                // A request is passed on once only.
                guard engine.leader?.isHere == true else {
                    throw Problem.engine(EngineError.cluster(.noWrites))
                }
                return try await handler(request, context)
            }
        }
        return RouteTable(
            passed + [
                GatewayRoute(.POST, Self.attributesPath) { request, context in
                    guard engine.leader?.isHere == true else {
                        throw Problem.engine(EngineError.cluster(.noWrites))
                    }
                    let document = try await request.json(upTo: limits.registrationBytesMax)
                    let claims = try [String: [String]](decoding: document)
                    _ = try await engine.clients.present(claims, of: try context.clientKey())
                    return RouteResponse(.noContent)
                },
                GatewayRoute(.POST, Self.streamsPath) { request, _ in
                    try await streams(of: try await request.json(upTo: limits.postBytesMax))
                },
                GatewayRoute(.POST, StreamTickets.path) { request, _ in
                    guard engine.leader?.isHere == true else {
                        throw Problem.engine(EngineError.cluster(.noWrites))
                    }
                    let document = try await request.json(upTo: 2 * JWS.tokenBytesMax)
                    let asked = try NodeTicket(decoding: document)
                    return try RouteResponse(.ok, document: try admission.tickets.answer(asked))
                },
                GatewayRoute(.POST, Self.contactsPath) { request, _ in
                    guard engine.leader?.isHere == true else {
                        throw Problem.engine(EngineError.cluster(.noWrites))
                    }
                    let node = try request.queryValue("node") ?? ""
                    try note(node, try await request.json(upTo: limits.postBytesMax))
                    return RouteResponse(.noContent)
                },
            ], tracing: tracing)
    }

    /// Returns the response to a request of another node. Throws only `CancellationError`.
    package static func respond(
        to request: GatewayRequest, on channel: any Channel, by table: RouteTable, logger: Logger
    ) async throws -> RouteResponse {
        let sender = request.header(FieldName.timelineSender).flatMap(VerifiedToken.init(passed:))
        return try await table.respond(to: request, on: channel, as: sender, logger: logger)
    }

    /// Returns the open streams of clients, one list for each.
    private func streams(of document: JSONValue) async throws -> RouteResponse {
        var lists: [[ExplainedStream]] = []
        for client in try [NodeClient](decoding: document) {
            lists.append(try await explainer.streams(of: client.key).map(\.document))
        }
        return try RouteResponse(.ok, document: lists)
    }
}

/// A client, as nodes name it to each other.
package struct NodeClient: Codable, Sendable {
    private let app: String
    private let client: String

    package init(_ key: ClientKey) { (app, client) = (key.app, key.client) }

    package var key: ClientKey { ClientKey(app: app, client: client) }
}

/// The sender of a request, as one node passes it to another.
private struct PassedSender: Codable {
    let issuer: String
    let subject: String
    let app: String
    let scopes: [String]
    let expires: Int64
    let validFrom: Int64
    let attributes: [String: [String]]
    let kid: String
}

extension VerifiedToken {
    /// The token as one node passes it to another. Throws `Faults`.
    fileprivate func passed() throws -> String {
        let sender = PassedSender(
            issuer: issuer, subject: subject, app: app, scopes: scopes.map(\.rawValue),
            expires: expires, validFrom: validFrom, attributes: attributes, kid: kid)
        return String(
            decoding: Base64.url.encode(try JSONValue(encoding: sender).serialized), as: UTF8.self)
    }

    fileprivate convenience init?(passed text: String) {
        guard let bytes = Base64.url.decode(text), let document = try? JSONValue(parsing: bytes),
            let sender = try? PassedSender(decoding: document)
        else { return nil }
        self.init(
            issuer: sender.issuer, subject: sender.subject, app: sender.app,
            scopes: Set(sender.scopes.compactMap(Scope.init(rawValue:))), expires: sender.expires,
            validFrom: sender.validFrom, attributes: sender.attributes, kid: sender.kid)
    }
}
