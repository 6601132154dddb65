import GatewayCore
import GatewaySigning
import NIOCore
import NIOHTTP1
import WidgetModel

/// The routes of the TLS port (design, section 5), and what they need.
struct GatewayRoutes: Sendable {
    let admission: StreamAdmission
    let sequencer: Sequencer
    let authorizer: Authorizer
    let press: NotificationPress
    let metrics: GatewayMetrics
    let desk: CursorDesk
    let limits: Limits
    let keys: KeyService
    let registrationDays: Int
    let reload: ConfigurationReload
    let explainer: Explainer
    let tracing: GatewayTracing?

    var documents: DocumentWork { sequencer.documents }

    /// The routes without that of the document.
    private var described: [GatewayRoute] {
        catalogRoutes + changeRoutes + clientRoutes + [reloadsRoute] + operatorRoutes
            + configurationRoutes + keyRoutes
    }

    /// The table of the TLS port.
    var table: RouteTable {
        let operation = APIDocument.operation(for: .anyone)
        let document = APIDocument(
            described.map(\.described)
                + [.init(method: "GET", path: APIDocument.path, operation: operation)], of: .tls)
        let answer = GatewayAnswer(
            .ok, headers: [FieldName.contentType: "application/json"],
            body: ByteBuffer(bytes: document.bytes))
        let own = GatewayRoute(.GET, APIDocument.path, operation) { _, _ in answer }
        return RouteTable(
            routes: described + [own], limits: admission.requestLimits, tracing: tracing)
    }

    /// The table of those that the admin port has too: streams and polls need an event loop with a
    /// shard.
    var adminTable: RouteTable {
        RouteTable(
            routes: catalogRoutes + changeRoutes + clientRoutes + operatorRoutes
                + configurationRoutes + keyRoutes, limits: nil, tracing: tracing)
    }

    /// The request's token.
    func token(_ request: GatewayRequest, _ context: GatewayContext) async throws -> VerifiedToken {
        let authorization = request.header(FieldName.authorization)
        if authorization == nil, let reader = context.reader { return reader }
        let uris =
            authorization == nil && authorizer.takesCertificates
            ? await context.certificateURIs() : []
        let token = try authorizer.token(
            authorization, from: request.account?.source, request.account?.limits,
            certificateURIs: { uris })
        request.account?.identify(token)
        return token
    }

    /// The app of the path, for whose scope the request has a token.
    func app(
        _ request: GatewayRequest, _ context: GatewayContext, _ scope: Scope
    ) async throws -> String {
        let token = try await token(request, context)
        let app = try context.name("app")
        try authorizer.require(scope, token, app: app)
        return app
    }

    func getKeys(_ request: GatewayRequest, _ context: GatewayContext) async throws
        -> GatewayAnswer
    {
        GatewayAnswer(
            .ok, json: keys.publishedKeys.json,
            headers: [
                FieldName.contentType: JWKSet.mediaType,
                FieldName.cacheControl: "public, max-age=\(keys.keySetMaxAge)",
            ])
    }
}

extension GatewayRoutes {
    // MARK: Catalog

    func putCatalog(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> GatewayAnswer {
        let app = try await app(request, context, .catalogWrite)
        let contentType = request.header(FieldName.contentType)
        let precondition = try Self.precondition(request)
        let body = try await request.bytes(upTo: limits.catalogBytesMax)
        return try await documents.run(.large, for: app) {
            let catalog = try catalog(contentType, body, app)
            let replaced = sequencer.ruleSet(of: app)
            defer { documents.release(replaced, of: app) }
            let outcome = try await sequencer.putCatalog(
                catalog, contentType: contentType ?? "", body: body, precondition)
            return GatewayAnswer(
                outcome.isNew ? .created : .ok,
                json: [
                    "app": .string(app), "kinds": .integer(Int64(outcome.kinds)),
                    "sequence": .integer(Int64(clamping: outcome.document.sequence)),
                    "warnings": .array(catalog.warnings.map(\.json)),
                ], headers: [FieldName.eTag: outcome.document.etag])
        }
    }

    /// A catalog as it was sent.
    ///
    /// - Throws: 400, 415, 422.
    func catalog(_ contentType: String?, _ body: [UInt8], _ app: String) throws -> Catalog {
        do throws(DocumentRefusal) {
            return try Catalog(contentType: contentType, body: body, app: app, limits: limits)
        } catch {
            throw Problem.document(error)
        }
    }

    private static func precondition(_ request: GatewayRequest) throws -> Precondition {
        if let match = request.header(FieldName.ifMatch) {
            return .match(
                match.split(separator: ",").map { tag in
                    tag.trimmingPrefix { $0 == " " }.reversed().drop { $0 == " " }.reversed()
                }.map { String($0) })
        }
        if let noneMatch = request.header(FieldName.ifNoneMatch) {
            guard noneMatch == "*" else {
                throw Problem.malformed("If-None-Match takes `*` only here.")
            }
            return .absent
        }
        return .none
    }

    func getCatalog(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> GatewayAnswer {
        let app = try await app(request, context, .catalogWrite)
        guard let document = sequencer.catalogDocument(app) else { throw Problem.unknownApp }
        try request.requireAcceptable(document.contentType)
        return GatewayAnswer(
            .ok,
            headers: [FieldName.contentType: document.contentType, FieldName.eTag: document.etag],
            body: ByteBuffer(bytes: document.body))
    }

    // MARK: Changes and reloads

    func postChanges(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> GatewayAnswer {
        let app = try await app(request, context, .changesWrite)
        let body = try await request.bytes(upTo: limits.postBytesMax)
        let outcome = try await documents.run(.bytes(body.count), for: app) {
            try await sequencer.post(try events(body, of: request), app: app)
        }
        return GatewayAnswer(
            .accepted,
            numbers: [
                "accepted": Int64(outcome.accepted), "duplicates": Int64(outcome.duplicates),
                "unmatched": Int64(outcome.unmatched), "broad": Int64(outcome.broad),
                "sequence": Int64(clamping: outcome.sequence),
            ])
    }

    /// The events of a post: structured, binary or a batch.
    ///
    /// - Throws: 400, 415, 422.
    func events(_ body: [UInt8], of request: GatewayRequest) throws -> [CloudEvent] {
        var headers: [(name: String, value: String)] = []
        for field in request.head.headers where field.name.isField(beginningWith: "ce-") {
            headers.append((field.name.lowercased(), field.value.fieldValue))
        }
        do throws(DocumentRefusal) {
            return try CloudEventPost(
                contentType: request.header(FieldName.contentType), headers: headers, body: body,
                limits: limits
            ).events
        } catch {
            throw Problem.document(error)
        }
    }

    func postReload(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> GatewayAnswer {
        let app = try await app(request, context, .operate)
        let document = try await request.json(upTo: limits.eventBytesMax)
        guard let scope = ReloadScope(document) else {
            throw Problem.wrong(
                Faults("", #"must be {"all": true}, {"kind": "…"} or {"client": "…"}"#))
        }
        let sequence = try await sequencer.reload(scope, app: app)
        return GatewayAnswer(.accepted, json: ["sequence": .integer(Int64(clamping: sequence))])
    }

    // MARK: Tokens

    func postToken(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> GatewayAnswer {
        let app = try await app(request, context, .tokensIssue)
        guard sequencer.catalogDocument(app) != nil else { throw Problem.unknownApp }
        let document = try await request.json(upTo: limits.eventBytesMax)
        let order = try TokenOrder(document, limits: limits)
        let issued: String?
        do throws(SigningError) {
            issued = try keys.issueClientToken(order, app: app, now: desk.wallSeconds())
        } catch {
            guard error.code == .limitExceeded else { throw error }
            let most = JWS.tokenBytesMax
            throw Problem.wrong(
                Faults("attributes", "are too long: a token has at most \(most) bytes"))
        }
        guard let token = issued else {
            throw Problem.forbidden(
                "no-local-issuer", "This gateway's own issuer is not enabled by configuration.")
        }
        return GatewayAnswer(
            .created,
            json: [
                "token": .string(token),
                "expires": .string(timestamp((desk.wallSeconds() + order.ttl) * 1000)),
            ], headers: [FieldName.cacheControl: "no-store"])
    }
}

/// What a backend wants a client token for.
struct TokenOrder: Sendable {
    /// Longest life of a client token, in seconds (design, section 5).
    static let ttlMax: Int64 = 30 * 24 * 3600

    let sub: String
    let ttl: Int64
    let attributes: [String: [String]]

    init(_ document: JSONValue, limits: Limits) throws {
        guard let object = document.objectValue else {
            throw Problem.wrong(Faults("", "must be an object, not \(document.shape)"))
        }
        var faults = Faults()
        let sub = object["sub"]?.stringValue ?? ""
        if !Identifier.isValid(sub) {
            faults.add("sub", "must be the client id: 1 to 128 characters of A-Z a-z 0-9 . _ ~ -")
        }
        let ttl: Int64? =
            switch object["ttl"] {
            case nil: 3600
            case .integer(let seconds): seconds
            case .string(let text): Self.seconds(text)
            default: nil
            }
        if let ttl, (1...Self.ttlMax).contains(ttl) {
            self.ttl = ttl
        } else {
            faults.add("ttl", "must be seconds or a duration such as 1h, at most 30 days")
            self.ttl = 0
        }
        self.sub = sub
        attributes =
            object["attributes"].map {
                readAttributes($0, at: "attributes", limits: limits, &faults)
            } ?? [:]
        guard faults.isEmpty else { throw Problem.wrong(faults) }
    }

    /// Reads `90`, `90s`, `15m`, `1h` or `30d`.
    package static func seconds(_ text: String) -> Int64? {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        guard let last = text.last else { return nil }
        guard let unit = units[last] else { return Int64(text) }
        guard let number = Int64(text.dropLast()), number >= 0 else { return nil }
        let (product, overflow) = number.multipliedReportingOverflow(by: unit)
        return overflow ? nil : product
    }
}
