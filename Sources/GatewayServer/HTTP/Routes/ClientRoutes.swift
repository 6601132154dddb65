import CoreMetrics
import Foundation
import GatewayCore
import GatewayDocuments
import GatewayEngine
import GatewayOperations
import GatewaySigning
import GatewayStorage
import NIOHTTP1
import WidgetModel

/// The routes of registrations: a client's own, or any with `clients:write`.
extension GatewayRoutes {
    private func client(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> (key: ClientKey, registrar: Registrar) {
        let token = try await token(request, context)
        let key = try context.clientKey()
        try authorizer.requireClient(token, key, backendMay: true)
        let isBackend = token.scopes.contains(.clientsWrite)
        return (key, isBackend ? .backend : .client(vouched: token.attributes))
    }

    func putClient(_ request: GatewayRequest, _ context: GatewayContext) async throws
        -> RouteResponse
    {
        let (key, registrar) = try await client(request, context)
        let body = try await request.jsonBytes(upTo: limits.registrationBytesMax)
        return try await register(key, size: body.count, registrar) {
            .document(try GatewayRequest.json(body))
        }
    }

    func patchClient(_ request: GatewayRequest, _ context: GatewayContext) async throws
        -> RouteResponse
    {
        let (key, registrar) = try await client(request, context)
        let body = try await request.jsonBytes(upTo: limits.registrationBytesMax)
        return try await register(key, size: body.count, registrar) {
            let patch = try GatewayRequest.json(body)
            guard patch.objectValue != nil else {
                throw Problem.wrong(Faults("", "must be an object, not \(patch.shape)"))
            }
            return .patch(patch)
        }
    }

    private func register(
        _ key: ClientKey, size: Int, _ registrar: Registrar, _ read: () throws -> RegistrationInput
    ) async throws -> RouteResponse {
        let outcome = try await engine.documents.run(.bytes(size), for: key.app) {
            try await engine.clients.register(key, try read(), size: size, by: registrar)
        }
        let expires = engine.clock.wallMilliseconds() + Int64(registrationDays) * 86_400_000
        var document = Registered()
        document.client = key.client
        document.cursor = engine.cursors.text(outcome.position)
        document.expires = timestamp(expires)
        document.digest = outcome.digest
        document.warnings = outcome.warnings.list
        if outcome.hasWebhook { document.webhookKeys = keys.webhookSigner?.publicKeys }
        document.applicationServerKey = applicationServerKey(key.app)
        return try RouteResponse(outcome.isNew ? .created : .ok, document: document)
    }

    func getClient(_ request: GatewayRequest, _ context: GatewayContext) async throws
        -> RouteResponse
    {
        let token = try await token(request, context)
        let key = try context.clientKey()
        if !token.grants(.operatorRead, for: key.app) {
            try authorizer.requireClient(token, key, backendMay: true)
        }
        try await requireCatalog(of: key.app)
        guard let record = try await engine.clients.record(key) else { throw Problem.unknownClient }
        return try await engine.documents.run(record.isLarge ? .large : .bytes(0), for: key.app) {
            var document = [try Self.document(record)]
            try await explainer.describe(&document, app: key.app)
            return try RouteResponse(.ok, document: document[0])
        }
    }

    /// A registration as it is shown: with its effective attributes, and with push tokens masked.
    private static func document(_ record: ClientRecord) throws -> RegisteredClient {
        var registration = record.registration
        registration.attributes = record.attributes
        return try RegisteredClient(registration, client: record.client, digest: record.digest)
    }

    func deleteClient(_ request: GatewayRequest, _ context: GatewayContext) async throws
        -> RouteResponse
    {
        let (key, _) = try await client(request, context)
        try await requireCatalog(of: key.app)
        try await starts.remove(key)
        return RouteResponse(.noContent)
    }

    func listClients(_ request: GatewayRequest, _ context: GatewayContext) async throws
        -> RouteResponse
    {
        let app = try await app(request, context, .clientsWrite, .operatorRead)
        try await requireCatalog(of: app)
        let attribute = try request.queryValue("attribute").map(Self.attribute)
        let limit = try request.number("limit", in: 1...1_000) ?? 100
        let after = try request.queryValue("after")
        let prefix = try request.queryValue("prefix") ?? ""
        guard prefix.isEmpty || Identifier.isValid(prefix) else {
            throw Problem.wrong(
                Faults("prefix", "must be 1 to 128 characters of A-Z a-z 0-9 . _ ~ -"))
        }
        return try await engine.documents.run(.large, for: app) {
            let page: RegistrationPage
            do {
                page = try await engine.store.registrations(
                    app: app, attribute: attribute, prefix: prefix, after: after, limit: limit)
            } catch let error as StoreError {
                throw Problem.store(error)
            }
            var document = ClientPage()
            for row in page.rows {
                let stored = try StoredRegistration(row.payload, limits: .none)
                document.clients.append(
                    try Self.document(stored.record(of: row.key.client)))
            }
            try await explainer.describe(&document.clients, app: app)
            if page.hasMore { document.after = page.rows.last?.key.client }
            return try RouteResponse(.ok, document: document)
        }
    }

    func eraseClients(_ request: GatewayRequest, _ context: GatewayContext) async throws
        -> RouteResponse
    {
        let app = try await app(request, context, .clientsWrite)
        try await requireCatalog(of: app)
        guard let text = try request.queryValue("attribute") else {
            throw Problem.malformed("The query must be attribute=NAME:VALUE.")
        }
        let erased = try await engine.clients.erase(app: app, attribute: try Self.attribute(text))
        return try RouteResponse(.ok, document: ErasedClients(erased: erased))
    }

    /// Reads `account:42`.
    private static func attribute(_ text: String) throws -> (name: String, value: String) {
        let parts = text.split(separator: ":", maxSplits: 1)
        guard parts.count == 2 else {
            throw Problem.malformed("The query must be attribute=NAME:VALUE.")
        }
        return (String(parts[0]), String(parts[1]))
    }

    func postAcknowledgement(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> RouteResponse {
        let token = try await token(request, context)
        let key = try context.clientKey()
        try authorizer.requireClient(token, key, backendMay: false)
        let body = try await request.jsonBytes(upTo: limits.registrationBytesMax)
        let acknowledgement = try await engine.documents.run(.bytes(body.count), for: key.app) {
            try Acknowledgement(try GatewayRequest.json(body), limits: limits)
        }
        try await engine.cursors.find(acknowledgement.cursor)
        let cursor = engine.cursors.judge(acknowledgement.cursor)
        guard case .after(let sequence) = cursor.point else {
            throw Problem.wrong(
                Faults("cursor", "is not a valid cursor of this gateway"))
        }
        let digest = request.header(FieldName.timelineRegistration)
        guard let record = try await engine.clients.record(key, digest: digest) else {
            throw Problem.unknownClient
        }
        let claims = try authorizer.newClaims(token, record)
        try StreamAdmission.requireRegistered(digest, record)
        if let leader = engine.leader, !leader.isHere,
            claims != nil || !acknowledgement.recommendations.isEmpty
        {
            return try await pass(request, from: token, body: body, to: leader)
        }
        if let claims {
            _ = try await engine.clients.present(claims, of: key)
        }
        metrics.rebuildFailures.increment(by: acknowledgement.failed)
        try await engine.clients.acknowledge(
            key, at: sequence, in: cursor.epoch, recommendations: acknowledgement.recommendations,
            rebuilt: acknowledgement.rebuilt)
        return RouteResponse(.noContent)
    }
}

/// A client's report of its rebuilds.
struct Acknowledgement: Sendable {
    let cursor: String
    let rebuilt: [RebuildReport]
    let failed: Int
    let recommendations: [String]

    init(_ document: JSONValue, limits: Limits) throws {
        guard let object = document.objectValue else {
            throw Problem.wrong(Faults("", "must be an object, not \(document.shape)"))
        }
        var faults = Faults()
        func entries(_ name: String) -> [JSONValue] {
            guard let value = object[name], value != .null else { return [] }
            guard let elements = value.arrayValue else {
                faults.add(name, "must be an array, not \(value.shape)")
                return []
            }
            if elements.count > limits.clientKeysMax {
                faults.add(name, "may have at most \(limits.clientKeysMax) elements")
            }
            return elements
        }
        let cursor = object["cursor"]?.stringValue
        if cursor == nil { faults.add("cursor", "is required, as a string") }
        let rebuilt = entries("rebuilt")
        let failed = entries("failed")
        var claims: [RebuildReport] = []
        for (index, entry) in rebuilt.enumerated() {
            Self.check(entry, at: "rebuilt[\(index)]", limits: limits, faults: &faults) {
                object, place, faults in
                let (time, unchanged) = (object["ms"] ?? .null, object["unchanged"] ?? .null)
                let milliseconds = time.numberValue
                if time != .null, !((milliseconds ?? -1) >= 0) {
                    faults.add("\(place).ms", "must be a number of milliseconds, not negative")
                }
                if unchanged != .null, unchanged.boolValue == nil {
                    faults.add("\(place).unchanged", "must be true or false")
                }
                claims.append(
                    RebuildReport(
                        name: Self.name(object, limits), milliseconds: milliseconds,
                        isUnchanged: unchanged.boolValue ?? false))
            }
        }
        for (index, entry) in failed.enumerated() {
            Self.check(entry, at: "failed[\(index)]", limits: limits, faults: &faults) {
                object, place, faults in
                guard let reason = object["reason"], reason != .null else { return }
                if reason.stringValue == nil { faults.add("\(place).reason", "must be a string") }
            }
        }
        let recommendations = entries("recommendations")
        for (index, kind) in recommendations.enumerated() {
            Self.checkKind(kind, at: "recommendations[\(index)]", limits: limits, faults: &faults)
        }
        guard faults.isEmpty, let cursor else { throw Problem.wrong(faults) }
        self.cursor = cursor
        self.rebuilt = claims
        self.failed = failed.count
        self.recommendations = recommendations.compactMap(\.stringValue)
    }

    /// The timeline that an entry names; impossible values are left out.
    private static func name(_ entry: JSONObject, _ limits: Limits) -> TimelineID {
        var parameters: [String: ParameterValue] = [:]
        for member in entry["parameters"]?.objectValue?.members ?? [] {
            var faults = Faults()
            parameters[member.name] = ParameterValue(
                member.value, at: member.name, limits: limits, &faults)
        }
        return TimelineID(entry["kind"]?.stringValue ?? "", parameters)
    }

    private static func check(
        _ entry: JSONValue, at place: String, limits: Limits, faults: inout Faults,
        _ rest: (JSONObject, String, inout Faults) -> Void
    ) {
        guard let object = entry.objectValue else {
            faults.add(place, "must be an object with at least `kind`, not \(entry.shape)")
            return
        }
        checkKind(object["kind"] ?? .null, at: "\(place).kind", limits: limits, faults: &faults)
        if let parameters = object["parameters"], parameters != .null,
            parameters.objectValue == nil
        {
            faults.add("\(place).parameters", "must be an object, not \(parameters.shape)")
        }
        rest(object, place, &faults)
    }

    private static func checkKind(
        _ kind: JSONValue, at place: String, limits: Limits, faults: inout Faults
    ) {
        guard let text = kind.stringValue else {
            faults.add(place, "must be a kind, as a string")
            return
        }
        if let reason = text.isUnfit(limit: limits.stringBytesMax) { faults.add(place, reason) }
    }
}

extension ClientRecord {
    /// Whether encoding the registration may take longer than a turn.
    fileprivate var isLarge: Bool {
        let items = registration.recommendations.reduce(0) { $0 + $1.items.count }
        return registration.widgets.count + registration.controls.count + items > 50
    }
}
