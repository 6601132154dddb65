import CatalogModel
import GatewayCore
import GatewayDocuments
import GatewayEngine
import GatewayOperations
import GatewaySigning
import Logging
import NIOCore
import NIOHTTP1
import WidgetModel

/// The routes of the TLS port and their dependencies.
package struct GatewayRoutes: Sendable {
    let engine: Engine
    let admission: StreamAdmission
    let starts: ActivityStarts
    let authorizer: Authorizer
    let signer: NotificationSigner
    let metrics: GatewayMetrics
    let limits: Limits
    let keys: KeyService
    /// Returns the key with which an app's browsers subscribe to Web Push.
    let applicationServerKey: @Sendable (_ app: String) -> String?
    let registrationDays: Int
    let configuration: ConfigurationCommands
    let explainer: Explainer
    let tracing: GatewayTracing?

    /// A method that responds to the requests of a route.
    typealias Handler = @Sendable (GatewayRoutes) -> GatewayRoute.Handler

    /// The routes that both ports have.
    static let shared: [(method: HTTPMethod, path: String, handler: Handler)] = [
        (.DELETE, appPath, deleteApp),
        (.PUT, appPath + "/catalog", putCatalog),
        (.GET, appPath + "/catalog", getCatalog),
        (.POST, appPath + "/catalog/diff", compareCatalog),
        (.POST, changesPath, postChanges),
        (.GET, changesPath, listChanges),
        (.POST, explainChangesPath, explainChanges),
        (.GET, appPath + "/changes/:sequence/explain", explainLogged),
        (.POST, appPath + "/activities", postActivity),
        (.POST, appPath + "/reloads", postReload),
        (.GET, appPath + "/clients", listClients),
        (.DELETE, appPath + "/clients", eraseClients),
        (.PUT, clientPath, putClient),
        (.PATCH, clientPath, patchClient),
        (.GET, clientPath, getClient),
        (.DELETE, clientPath, deleteClient),
        (.POST, acknowledgementsPath, postAcknowledgement),
        (.GET, clientPath + "/explain", explainClient),
        (.POST, clientPath + "/pushes", postPush),
        (.GET, appPath + "/attempts", listAttempts),
        (.GET, appPath + "/events", listEvents),
        (.POST, appPath + "/tokens", postToken),
        (.POST, "/v1/configuration/reload", reloadConfiguration),
        (.POST, "/v1/configuration/diff", compareConfiguration),
        (.GET, "/.well-known/jwks.json", getKeys),
    ]

    /// The route that needs an event loop with a shard, which the admin port lacks.
    static let reloadsPath = clientPath + "/reloads"
    /// The route of tickets for streams, which the admin port has not.
    static let ticketsPath = clientPath + "/tickets"
    /// The route that also answers senders of events, which the admin port has not.
    static let changesPath = appPath + "/changes"

    /// The only route that reads with another method than GET, because it needs a body.
    private static let explainChangesPath = changesPath + "/explain"
    package static let explainChangesTemplate = GatewayRoute.template(of: explainChangesPath)

    private static let appPath = "/v1/apps/:app"
    private static let clientPath = appPath + "/clients/:client"
    static let acknowledgementsPath = clientPath + "/acks"
    /// The paths of routes that each node of a cluster answers by itself.
    static let ownPaths: Set = [
        acknowledgementsPath, appPath + "/tokens", "/v1/configuration/reload",
        "/v1/configuration/diff", "/.well-known/jwks.json",
    ]

    /// The table of the TLS port.
    package var table: RouteTable {
        RouteTable(
            adminTable.routes + [
                GatewayRoute(.GET, Self.reloadsPath, getReloads),
                GatewayRoute(.POST, Self.ticketsPath, postTicket),
                GatewayRoute(.OPTIONS, Self.changesPath, offerChanges),
                .document(of: .tls, limits: limits),
            ], limits: admission.requestLimits, tracing: tracing, cors: admission.cors)
    }

    /// The table of the routes that the admin port also has.
    package var adminTable: RouteTable {
        RouteTable(
            Self.shared.map {
                GatewayRoute($0.method, $0.path, passing($0.path, $0.handler(self)))
            },
            tracing: tracing)
    }

    func token(_ request: GatewayRequest, _ context: GatewayContext) async throws -> VerifiedToken {
        let authorization = request.header(FieldName.authorization)
        if authorization == nil, let reader = context.reader { return reader }
        let uris =
            authorization == nil && authorizer.takesCertificates
            ? await context.certificateURIs() : []
        let token = try authorizer.token(
            authorization, from: request.address, request.account?.limits,
            certificateURIs: { uris })
        request.account?.identify(token)
        return token
    }

    /// The app of the path, after a check that the token has one of the scopes for it.
    func app(
        _ request: GatewayRequest, _ context: GatewayContext, _ scopes: Scope...
    ) async throws -> String {
        let token = try await token(request, context)
        let app = try context.name("app")
        try authorizer.require(scopes, for: token, app: app)
        return app
    }

    func getKeys(_ request: GatewayRequest, _ context: GatewayContext) async throws
        -> RouteResponse
    {
        let document = keys.publishedKeys.json.serialized
        return RouteResponse(
            .ok,
            headers: [
                FieldName.contentType: JWKSet.mediaType,
                FieldName.eTag: EntityTag.tag(of: document),
                FieldName.cacheControl: "public, max-age=\(keys.keySetMaxAge)",
            ], body: ByteBuffer(bytes: document))
    }
}

extension GatewayRoutes {
    // MARK: Catalog

    func putCatalog(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> RouteResponse {
        let app = try await app(request, context, .catalogWrite)
        let contentType = request.header(FieldName.contentType)
        let precondition = try Self.precondition(request)
        let body = try await request.bytes(upTo: limits.catalogBytesMax)
        return try await engine.documents.run(.large, for: app) {
            let catalog = try catalog(contentType, body, app)
            let replaced = engine.catalogs.ruleSet(of: app)
            defer { engine.documents.release(replaced, of: app) }
            let faults = engine.clients.contentFaults(of: catalog, replacing: replaced?.catalog)
            guard faults.isEmpty else { throw Problem.wrong(faults) }
            let outcome = try await engine.changes.putCatalog(
                catalog, contentType: contentType ?? "", body: body, precondition)
            if replaced !== engine.catalogs.ruleSet(of: app) {
                authorizer.log?.log(
                    .catalog, of: app,
                    ["app": "\(app)", "kinds": "\(catalog.widgets.count)"])
            }
            var document = CatalogTaken()
            (document.app, document.kinds) = (app, catalog.widgets.count)
            document.sequence = outcome.document.sequence
            document.warnings = catalog.warnings
            if !catalog.activities.isEmpty {
                document.contentKeys = keys.webhookSigner?.publicKeys
            }
            return try RouteResponse(
                outcome.isNew ? .created : .ok, document: document,
                headers: [FieldName.eTag: outcome.document.etag])
        }
    }

    /// Reads a catalog as it was sent. Throws 400, 415, 422.
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
                throw Problem.malformed("If-None-Match only supports `*` here.")
            }
            return .absent
        }
        return .none
    }

    func requireCatalog(of app: String) async throws {
        guard try await engine.changes.catalog(of: app) != nil else { throw Problem.unknownApp }
    }

    func getCatalog(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> RouteResponse {
        let app = try await app(request, context, .catalogWrite, .operatorRead)
        guard let document = try await engine.changes.catalog(of: app) else {
            throw Problem.unknownApp
        }
        try request.requireAcceptable(document.contentType)
        return RouteResponse(
            .ok,
            headers: [FieldName.contentType: document.contentType, FieldName.eTag: document.etag],
            body: ByteBuffer(bytes: document.body))
    }

    // MARK: Changes and reloads

    func postChanges(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> RouteResponse {
        let app = try await app(request, context, .changesWrite)
        let body = try await request.bytes(upTo: limits.postBytesMax)
        let outcome = try await engine.documents.run(.bytes(body.count), for: app) {
            try await engine.changes.post(try events(body, of: request), app: app)
        }
        // The members of `ChangesTaken`, without an intermediate tree: posts are a hot path.
        return RouteResponse(
            .accepted,
            numbers: [
                "accepted": Int64(outcome.accepted), "duplicates": Int64(outcome.duplicates),
                "unmatched": Int64(outcome.unmatched), "broad": Int64(outcome.broad),
                "sequence": Int64(clamping: outcome.sequence),
            ])
    }

    /// Reads the events of a post: structured, binary or a batch. Throws 400, 415, 422.
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
    ) async throws -> RouteResponse {
        let app = try await app(request, context, .operate)
        let document = try await request.json(upTo: limits.eventBytesMax)
        guard let scope = ReloadScope(document) else {
            throw Problem.wrong(
                Faults("", #"must be {"all": true}, {"kind": "…"} or {"client": "…"}"#))
        }
        if case .kind(let kind) = scope, let ruleSet = engine.catalogs.ruleSet(of: app),
            ruleSet.since(kind: kind) == nil, let hint = ruleSet.nearestKind(to: kind)
        {
            throw Problem.wrong(
                Faults("kind", "is not declared in the app's catalog; did you mean `\(hint)`?"))
        }
        let sequence = try await engine.changes.reload(scope, app: app)
        return try RouteResponse(.accepted, document: ReloadTaken(sequence: sequence))
    }

    // MARK: Live Activities

    func postActivity(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> RouteResponse {
        let app = try await app(request, context, .changesWrite)
        let document = try await request.json(upTo: limits.startBytesMax)
        let start: ActivityStart
        do throws(Faults) {
            start = try ActivityStart(document, limits: limits)
        } catch {
            throw Problem.wrong(error)
        }
        let taken = try await starts.post(start, app: app)
        return try RouteResponse(.accepted, document: taken)
    }

    // MARK: Tokens

    func postToken(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> RouteResponse {
        let app = try await app(request, context, .tokensIssue)
        try await requireCatalog(of: app)
        let document = try await request.json(upTo: limits.eventBytesMax)
        let wanted = try ClientTokenRequest(document, limits: limits)
        let issued: String?
        do throws(SigningError) {
            issued = try keys.issueClientToken(
                to: wanted.sub, app: app, attributes: wanted.attributes, ttl: wanted.ttl,
                now: engine.clock.wallSeconds())
        } catch {
            guard error.code == .limitExceeded else { throw error }
            let most = JWS.tokenBytesMax
            throw Problem.wrong(
                Faults("attributes", "are too long: a token has at most \(most) bytes"))
        }
        guard let token = issued else {
            throw Problem.forbidden(
                "no-local-issuer",
                "This gateway's own issuer is not enabled; set `localIssuer: true` in its configuration."
            )
        }
        return try RouteResponse(
            .created,
            document: IssuedToken(
                token: token, expires: timestamp((engine.clock.wallSeconds() + wanted.ttl) * 1000)),
            headers: [FieldName.cacheControl: "no-store"])
    }
}
