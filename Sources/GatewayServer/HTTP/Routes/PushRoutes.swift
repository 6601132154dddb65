import GatewayCore
import GatewayDocuments
import GatewayEngine
import GatewaySigning
import GatewayStorage
import NIOHTTP1
import WidgetModel

/// The routes of pushes for operators: recent attempts, problems that need an operator, and
/// resending.
extension GatewayRoutes {
    private static let channels = NotificationChannel.pushes.map(\.rawValue)

    func postPush(_ request: GatewayRequest, _ context: GatewayContext) async throws
        -> RouteResponse
    {
        let app = try await app(request, context, .operate)
        let key = ClientKey(app: app, client: try context.name("client"))
        let document = try await request.json(upTo: limits.eventBytesMax)
        try await requireCatalog(of: app)
        guard let name = document.objectValue?["channel"]?.stringValue,
            let channel = NotificationChannel.pushes.first(where: { $0.rawValue == name })
        else {
            throw Problem.wrong(Faults("channel", "must be one of \(Self.list(Self.channels))"))
        }
        guard try await engine.clients.record(key) != nil else { throw Problem.unknownClient }
        switch try await engine.push?.resend(key, channel: channel) ?? .nowhere {
        case .pushing(let count):
            return try RouteResponse(.accepted, document: PushesTaken(pushes: count))
        case .nowhere:
            throw Problem.wrong(
                Faults("channel", "is not a channel on which this gateway pushes to the client"))
        case .busy:
            throw Problem.unavailable("Too many pushes in flight; retry later.")
        }
    }

    func listAttempts(_ request: GatewayRequest, _ context: GatewayContext) async throws
        -> RouteResponse
    {
        let app = try await app(request, context, .operatorRead)
        try await requireCatalog(of: app)
        var query = PushAttemptQuery(app: app)
        var faults = Faults()
        query.client = try request.queryValue("client")
        if let client = query.client, !Identifier.isValid(client) {
            faults.add("client", "must be 1 to 128 characters of A-Z a-z 0-9 . _ ~ -")
        }
        query.channel = try request.queryValue("channel")
        if let channel = query.channel, !Self.channels.contains(channel) {
            faults.add("channel", "must be one of \(Self.list(Self.channels))")
        }
        query.outcome = try request.queryValue("outcome")
        if let outcome = query.outcome, PushOutcome(rawValue: outcome) == nil {
            faults.add(
                "outcome", "must be one of \(Self.list(PushOutcome.allCases.map(\.rawValue)))")
        }
        if let text = try request.queryValue("before") {
            query.before = Int64(text)
            if query.before == nil {
                faults.add("before", "must be the `before` of a previous page")
            }
        }
        let limit = try Self.limit(request, &faults)
        guard faults.isEmpty else { throw Problem.wrong(faults) }
        var rows: [PushAttemptRow]
        do {
            rows = try await engine.store.pushAttempts(query, limit: limit + 1)
        } catch let error as StoreError {
            throw Problem.store(error)
        }
        let hasMore = rows.count > limit
        rows = Array(rows.prefix(limit))
        var page = AttemptPage()
        page.attempts = rows.map(\.document)
        if hasMore { page.before = rows.last?.number }
        return try RouteResponse(.ok, document: page, headers: Self.notStored)
    }

    func listEvents(_ request: GatewayRequest, _ context: GatewayContext) async throws
        -> RouteResponse
    {
        let app = try await app(request, context, .operatorRead)
        try await requireCatalog(of: app)
        var document = PushEvents()
        document.events = engine.push?.events.events(of: app).map(\.document) ?? []
        return try RouteResponse(.ok, document: document, headers: Self.notStored)
    }

    private static func limit(_ request: GatewayRequest, _ faults: inout Faults) throws -> Int {
        let limitMax = 1000
        guard let text = try request.queryValue("limit") else { return 100 }
        guard let number = Int(text), (1...limitMax).contains(number) else {
            faults.add("limit", "must be a number from 1 to \(limitMax)")
            return 1
        }
        return number
    }

    private static func list(_ words: [String]) -> String { words.joined(separator: ", ") }
}

extension PushAttemptRow {
    /// The attempt as it is shown, without a token.
    fileprivate var document: PushAttempt {
        var attempt = PushAttempt()
        attempt.number = number
        attempt.time = timestamp(at)
        attempt.client = key.client
        attempt.channel = channel
        attempt.outcome = outcome
        attempt.ms = milliseconds
        attempt.reason = reason
        attempt.reference = reference
        attempt.sequence = sequence
        attempt.cause = cause
        return attempt
    }
}

extension PushAlerts.Event {
    fileprivate var document: PushEvent {
        var event = PushEvent()
        event.time = timestamp(at)
        event.event = kind.rawValue
        event.times = times
        event.text = text
        event.client = client
        return event
    }
}
