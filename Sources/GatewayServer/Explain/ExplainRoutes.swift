import GatewayCore
import GatewaySigning
import GatewayStorage
import NIOCore
import NIOHTTP1
import WidgetModel

/// Why something was reloaded or not, both ways: from a change, and from a client.
extension GatewayRoutes {
    /// Events of one post that are explained; each may be about everybody.
    static let explainedEventsMax = 100
    /// An answer is of its moment.
    private static let notStored: HTTPHeaders = [FieldName.cacheControl: "no-store"]

    func explainChanges(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> GatewayAnswer {
        let app = try await app(request, context, .changesWrite)
        let body = try await request.bytes(upTo: limits.postBytesMax)
        return try await documents.run(.large, for: app) {
            let events = try events(body, of: request)
            guard events.count <= Self.explainedEventsMax else {
                throw Problem.tooLarge(
                    "At most \(Self.explainedEventsMax) events are explained at once.")
            }
            guard let ruleSet = sequencer.ruleSet(of: app) else { throw Problem.unknownApp }
            var explanations: [ChangeExplanation] = []
            var keys = 0
            for (index, event) in events.enumerated() {
                do throws(RuleSet.TooManyKeys) {
                    explanations.append(try ruleSet.explain(event.change, limits: limits))
                } catch {
                    throw Problem.tooManyKeys(error, limits, index: events.count > 1 ? index : nil)
                }
                keys += explanations[index].decision.keys.count
                guard index == 0 || keys <= limits.changeKeysMax else {
                    throw Problem.tooLarge(
                        "The events raise more than \(limits.changeKeysMax) keys together, by "
                            + "limits.changeKeys; explain fewer of them at once.")
                }
            }
            let subject = ExplainedChanges(
                app: app, ruleSet: ruleSet, changes: events.map(\.change),
                decisions: explanations.map(\.decision), sequence: nil)
            let tallies = try await explainer.tallies(of: subject) { context.channel.isActive }
            let time = explainer.time
            let members = zip(zip(events, explanations), tallies).map { explained, tally in
                let (event, explanation) = explained
                var object: JSONObject = ["source": .string(event.source), "id": .string(event.id)]
                for member in explanation.members(by: ruleSet, of: event.change).members {
                    object[member.name] = member.value
                }
                object["holders"] = tally.holdersJSON
                object["outcomes"] = tally.outcomesJSON(time, withExamples: false)
                return JSONValue.object(object)
            }
            return GatewayAnswer(
                .ok,
                json: [
                    "catalog": .integer(Int64(clamping: ruleSet.sequence)),
                    "events": .array(members),
                ], headers: Self.notStored)
        }
    }

    func explainClient(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> GatewayAnswer {
        let app = try await app(request, context, .operate)
        let key = ClientKey(app: app, client: try context.name("client"))
        guard sequencer.catalogDocument(app) != nil else { throw Problem.unknownApp }
        return try await documents.run(.large, for: app) {
            guard let json = try await explainer.client(key) else { throw Problem.unknownClient }
            return GatewayAnswer(.ok, json: json, headers: Self.notStored)
        }
    }

    func explainLogged(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> GatewayAnswer {
        let app = try await app(request, context, .operate)
        guard sequencer.catalogDocument(app) != nil else { throw Problem.unknownApp }
        guard let sequence = UInt64(try context.name("sequence")), sequence <= Int64.max else {
            throw Problem.wrong(Faults("sequence", "must be the number of a change"))
        }
        return try await documents.run(.large, for: app) {
            guard let logged = try await explainer.logged(sequence, app: app) else {
                throw Problem.unknownChange
            }
            let explanation: ChangeExplanation
            do throws(RuleSet.TooManyKeys) {
                explanation = try logged.ruleSet.explain(logged.change, limits: limits)
            } catch {
                throw Problem.tooManyKeys(error, limits, index: nil)
            }
            let subject = ExplainedChanges(
                app: app, ruleSet: logged.ruleSet, changes: [logged.change],
                decisions: [explanation.decision], sequence: sequence)
            let tally =
                try await explainer.tallies(of: subject) { context.channel.isActive }.first
                ?? HolderTally()
            var object = logged.members
            for member in explanation.members(by: logged.ruleSet, of: logged.change).members {
                object[member.name] = member.value
            }
            object["catalog"] = .integer(Int64(clamping: logged.catalog))
            object["catalogOfThen"] = .bool(logged.isCatalogOfThen)
            object["holders"] = tally.holdersJSON
            object["outcomes"] = tally.outcomesJSON(explainer.time, withExamples: true)
            return GatewayAnswer(.ok, json: .object(object), headers: Self.notStored)
        }
    }

    /// How far back a catalog is held against what happened, in seconds, unless it is said.
    private static let comparedSeconds: Int64 = 86_400

    func compareCatalog(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> GatewayAnswer {
        let app = try await app(request, context, .catalogWrite)
        guard sequencer.catalogDocument(app) != nil else { throw Problem.unknownApp }
        let since = try request.queryValue("since")
        let seconds = since.map(TokenOrder.seconds) ?? Self.comparedSeconds
        guard let seconds, (1...3_650 * 86_400).contains(seconds) else {
            throw Problem.wrong(
                Faults("since", "must be seconds or a duration such as 24h or 7d, at most 3650d"))
        }
        let body = try await request.bytes(upTo: limits.catalogBytesMax)
        return try await documents.run(.large, for: app) {
            let catalog = try catalog(request.header(FieldName.contentType), body, app)
            do {
                return GatewayAnswer(
                    .ok,
                    json: try await explainer.difference(
                        to: catalog, app: app, since: desk.wallMilliseconds() - seconds * 1_000
                    ) { context.channel.isActive }, headers: Self.notStored)
            } catch let error as StoreError {
                throw Problem.store(error)
            }
        }
    }

    func listChanges(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> GatewayAnswer {
        let app = try await app(request, context, .operate)
        guard sequencer.catalogDocument(app) != nil else { throw Problem.unknownApp }
        let limit = try request.number("limit", in: 1...1_000) ?? 100
        let before = try request.number("before", in: 1...Int.max) ?? Int.max
        return try await documents.run(.large, for: app) {
            let page: (rows: [LogRow], next: UInt64?)
            do {
                page = try await sequencer.store.changes(
                    app: app, before: UInt64(before), after: sequencer.removal(of: app),
                    limit: limit)
            } catch let error as StoreError {
                throw Problem.store(error)
            }
            var changes: [JSONValue] = []
            for row in page.rows {
                let logged = try await explainer.logged(row)
                var object = logged.members
                object["entity"] = .string(logged.change.entity)
                if let id = logged.change.id { object["entityID"] = .string(id) }
                if let decision = try? logged.ruleSet.decide(logged.change, limits: limits) {
                    object["unmatched"] = .bool(decision.isUnmatched)
                    object["broad"] = .bool(decision.isBroad)
                    object["kinds"] = logged.ruleSet.kindsJSON(decision)
                }
                changes.append(.object(object))
            }
            var answer: JSONObject = ["changes": .array(changes)]
            if let next = page.next { answer["before"] = .integer(Int64(clamping: next)) }
            return GatewayAnswer(.ok, json: .object(answer), headers: Self.notStored)
        }
    }
}

extension Explainer.Logged {
    /// What the log says of it beside its keys.
    fileprivate var members: JSONObject {
        var object: JSONObject = [
            "sequence": .integer(Int64(clamping: row.sequence)),
            "time": .string(timestamp(row.acceptedAt)),
            "operation": .string(change.operation.rawValue),
            "urgency": .string(change.urgency.rawValue),
        ]
        if let source = row.source { object["source"] = .string(source) }
        if let id = row.eventID { object["id"] = .string(id) }
        if !change.properties.isEmpty {
            object["properties"] = .array(change.properties.map { .string($0) })
        }
        return object
    }
}

extension RuleSet {
    /// How many keys a decision raises of each kind.
    fileprivate func kindsJSON(_ decision: Decision) -> JSONValue {
        var counts: [String: Int64] = [:]
        for key in decision.keys { counts[rules[key.rule].kind, default: 0] += 1 }
        var object = JSONObject()
        for (kind, count) in counts.sorted(by: { $0.key < $1.key }) {
            object[kind] = .integer(count)
        }
        return .object(object)
    }
}

extension GatewayRequest {
    /// A number of the query.
    ///
    /// - Throws: 422 when it is none, or out of range.
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
