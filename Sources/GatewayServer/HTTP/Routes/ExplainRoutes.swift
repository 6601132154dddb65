import GatewayCore
import GatewayDocuments
import GatewayEngine
import GatewayOperations
import GatewaySigning
import GatewayStorage
import NIOCore
import NIOHTTP1
import WidgetModel

/// The routes that explain why something was or was not reloaded, starting from a change or from a
/// client.
extension GatewayRoutes {
    /// The maximum number of events of one post that are explained; each may concern every client.
    static let explainedEventsMax = 100
    /// An explanation is only valid at its moment.
    static let notStored: HTTPHeaders = [FieldName.cacheControl: "no-store"]

    func explainChanges(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> RouteResponse {
        let app = try await app(request, context, .changesWrite, .operatorRead)
        let body = try await request.bytes(upTo: limits.postBytesMax)
        return try await engine.documents.run(.large, for: app) {
            let events = try events(body, of: request)
            guard events.count <= Self.explainedEventsMax else {
                throw Problem.tooLarge(
                    "At most \(Self.explainedEventsMax) events can be explained per request.")
            }
            try await requireCatalog(of: app)
            guard let ruleSet = engine.catalogs.ruleSet(of: app) else { throw Problem.unknownApp }
            var explanations: [ChangeExplanation] = []
            var keys = 0
            for (index, event) in events.enumerated() {
                do throws(RuleSet.TooManyKeys) {
                    explanations.append(try ruleSet.explain(event.change, limits: limits))
                } catch {
                    throw Problem.wrong(
                        Faults(error, limits, index: events.count > 1 ? index : nil))
                }
                keys += explanations[index].decision.keys.count
                guard index == 0 || keys <= limits.changeKeysMax else {
                    throw Problem.tooLarge(
                        "The events invalidate more than \(limits.changeKeysMax) keys in total "
                            + "(limits.changeKeys); explain fewer events per request.")
                }
            }
            let subject = ExplainedChanges(
                app: app, ruleSet: ruleSet, changes: events.map(\.change),
                decisions: explanations.map(\.decision), sequence: nil)
            let tallies = try await explainer.tallies(of: subject) { context.channel.isActive }
            let time = explainer.time
            var document = ExplainedEvents()
            document.catalog = ruleSet.sequence
            document.events = zip(zip(events, explanations), tallies).map { explained, tally in
                let (event, explanation) = explained
                var change = ExplainedChange()
                change.source = event.source
                change.id = event.id
                explanation.describe(event.change, by: ruleSet, in: &change)
                change.holders = tally.summary
                change.outcomes = tally.outcomes(at: time, withExamples: false)
                return change
            }
            return try RouteResponse(.ok, document: document, headers: Self.notStored)
        }
    }

    func explainClient(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> RouteResponse {
        let app = try await app(request, context, .operatorRead)
        let key = ClientKey(app: app, client: try context.name("client"))
        try await requireCatalog(of: app)
        return try await engine.documents.run(.large, for: app) {
            guard let client = try await explainer.client(key) else { throw Problem.unknownClient }
            return try RouteResponse(.ok, document: client, headers: Self.notStored)
        }
    }

    func explainLogged(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> RouteResponse {
        let app = try await app(request, context, .operatorRead)
        try await requireCatalog(of: app)
        guard let sequence = UInt64(try context.name("sequence")), sequence <= Int64.max else {
            throw Problem.wrong(Faults("sequence", "must be the number of a change"))
        }
        return try await engine.documents.run(.large, for: app) {
            guard let logged = try await explainer.logged(sequence, app: app) else {
                throw Problem.unknownChange
            }
            let explanation: ChangeExplanation
            do throws(RuleSet.TooManyKeys) {
                explanation = try logged.ruleSet.explain(logged.change, limits: limits)
            } catch {
                throw Problem.wrong(Faults(error, limits, index: nil))
            }
            let subject = ExplainedChanges(
                app: app, ruleSet: logged.ruleSet, changes: [logged.change],
                decisions: [explanation.decision], sequence: sequence)
            let tally =
                try await explainer.tallies(of: subject) { context.channel.isActive }.first
                ?? ImpactSummary()
            var document = ExplainedChange()
            document.sequence = sequence
            document.time = timestamp(logged.row.acceptedAt)
            document.operation = logged.change.operation.rawValue
            document.urgency = logged.change.urgency.rawValue
            document.source = logged.row.source
            document.id = logged.row.eventID
            document.properties = logged.properties
            explanation.describe(logged.change, by: logged.ruleSet, in: &document)
            document.catalog = logged.catalog
            document.catalogOfThen = logged.isCatalogOfThen
            document.holders = tally.summary
            document.outcomes = tally.outcomes(at: explainer.time, withExamples: true)
            return try RouteResponse(.ok, document: document, headers: Self.notStored)
        }
    }

    /// The default age of the oldest changes in a comparison of catalogs, in seconds.
    private static let comparedSeconds: Int64 = 86_400

    func compareCatalog(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> RouteResponse {
        let app = try await app(request, context, .catalogWrite)
        try await requireCatalog(of: app)
        let since = try request.queryValue("since")
        let seconds = since.map(DurationText.seconds) ?? Self.comparedSeconds
        guard let seconds, (1...3_650 * 86_400).contains(seconds) else {
            throw Problem.wrong(
                Faults("since", "must be seconds or a duration such as 24h or 7d, at most 3650d"))
        }
        let body = try await request.bytes(upTo: limits.catalogBytesMax)
        return try await engine.documents.run(.large, for: app) {
            let catalog = try catalog(request.header(FieldName.contentType), body, app)
            do {
                return try RouteResponse(
                    .ok,
                    document: try await explainer.difference(
                        to: catalog, app: app,
                        since: engine.clock.wallMilliseconds() - seconds * 1_000
                    ) { context.channel.isActive }, headers: Self.notStored)
            } catch let error as StoreError {
                throw Problem.store(error)
            }
        }
    }

    func listChanges(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> RouteResponse {
        let app = try await app(request, context, .operatorRead)
        try await requireCatalog(of: app)
        let limit = try request.number("limit", in: 1...1_000) ?? 100
        let before = try request.number("before", in: 1...Int.max) ?? Int.max
        let filter = try Self.changeFilter(request)
        return try await engine.documents.run(.large, for: app) {
            var document = ChangePage()
            document.before = UInt64(before)
            for _ in 0..<(filter.isEmpty ? 1 : Self.filteredPagesMax) {
                guard document.changes.count < limit, let next = document.before,
                    context.channel.isActive
                else { break }
                document.before = try await list(
                    app, before: next, limit: limit, filter, in: &document.changes)
                await Task.yield()
            }
            return try RouteResponse(.ok, document: document, headers: Self.notStored)
        }
    }

    /// The maximum number of pages of the log that are searched for one page of filtered changes,
    /// and their size in rows.
    private static let filteredPagesMax = 20
    private static let filteredRows = 250

    private static func changeFilter(_ request: GatewayRequest) throws -> ChangeFilter {
        var filter = ChangeFilter()
        filter.entity = try request.queryValue("entity")
        filter.entityID = try request.queryValue("entityID")
        filter.kind = try request.queryValue("kind")
        filter.source = try request.queryValue("source")
        switch try request.queryValue("unmatched") {
        case nil, "false"?: break
        case "true"?: filter.isUnmatchedOnly = true
        default: throw Problem.wrong(Faults("unmatched", "must be true or false"))
        }
        return filter
    }

    /// Appends changes of one page of the log that pass a filter, until there are `limit`; returns
    /// the cursor of what was not searched.
    private func list(
        _ app: String, before: UInt64, limit: Int, _ filter: ChangeFilter,
        in changes: inout [LoggedChange]
    ) async throws -> UInt64? {
        let page: (rows: [LogRow], next: UInt64?)
        do {
            page = try await engine.store.changes(
                app: app, before: before, after: engine.catalogs.removal(of: app),
                limit: filter.isEmpty ? limit : Self.filteredRows)
        } catch let error as StoreError {
            throw Problem.store(error)
        }
        for row in page.rows {
            let logged = try await explainer.logged(row)
            guard filter.admits(logged.change, source: row.source),
                let change = listed(logged, filter)
            else { continue }
            changes.append(change)
            if changes.count == limit {
                return row.sequence == page.rows.last?.sequence ? page.next : row.sequence
            }
        }
        return page.next
    }

    /// Returns a change as it is listed; `nil` if it does not pass the filter.
    private func listed(_ logged: Explainer.Logged, _ filter: ChangeFilter) -> LoggedChange? {
        var change = LoggedChange()
        change.sequence = logged.row.sequence
        change.time = timestamp(logged.row.acceptedAt)
        change.operation = logged.change.operation.rawValue
        change.urgency = logged.change.urgency.rawValue
        change.source = logged.row.source
        change.id = logged.row.eventID
        change.properties = logged.properties
        change.entity = logged.change.entity
        change.entityID = logged.change.id
        if let decision = try? logged.ruleSet.decide(logged.change, limits: limits) {
            change.unmatched = decision.isUnmatched
            change.broad = decision.isBroad
            change.kinds = logged.ruleSet.keysByKind(decision)
        }
        let kinds = change.kinds?.members.map(\.name) ?? []
        return filter.admits(kinds: kinds, isUnmatched: change.unmatched ?? false) ? change : nil
    }
}

extension Explainer.Logged {
    /// The properties that changed; `nil` for all.
    fileprivate var properties: [String]? {
        change.properties.isEmpty ? nil : Array(change.properties)
    }
}

extension RuleSet {
    fileprivate func keysByKind(_ decision: Decision) -> JSONMap<Int> {
        var counts: [String: Int] = [:]
        for key in decision.keys { counts[rules[key.rule].kind, default: 0] += 1 }
        return JSONMap(sorting: counts)
    }
}

extension GatewayRequest {
    /// Reads a number of the query. Throws 422 if it is not a number, or out of range.
    func number(_ name: String, in range: ClosedRange<Int>) throws -> Int? {
        guard let text = try queryValue(name) else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw Problem.wrong(
                Faults(
                    name,
                    range.upperBound == .max
                        ? "must be a number of at least \(range.lowerBound)"
                        : "must be a number from \(range.lowerBound) to \(range.upperBound)"))
        }
        return number
    }
}
