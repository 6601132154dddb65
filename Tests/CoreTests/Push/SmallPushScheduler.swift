import CatalogModel
import Testing
import WidgetModel

@testable import GatewayCore

/// The smallest gateway that pushes: a log writer, a push scheduler and a clock.
struct SmallPushScheduler {
    var decider = Decider(hash: testHash, limits: Limits())
    var scheduler: PushScheduler
    var head: UInt64 = 0
    var now: Int64 = 1_000_000
    let terms: PushScheduler.Terms

    /// The content of the store of a gateway with a data directory.
    var saved: [ClientKey: [UInt8]] = [:]
    var clear: UInt64 = 0

    init(
        _ records: ClientRecord..., terms: PushScheduler.Terms = PushScheduler.Terms(),
        limits: CoreLimits = CoreLimits(), adjust: (inout PushScheduler.Terms) -> Void = { _ in }
    ) throws {
        var terms = terms
        adjust(&terms)
        self.terms = terms
        scheduler = PushScheduler(Shard(floor: 0, limits: limits), terms: terms, hash: testHash)
        try put()
        for record in records { register(record) }
    }

    mutating func register(
        _ record: ClientRecord = device(), heard: PushScheduler.Evidence = .none
    ) {
        scheduler.registered(record, app: "app", heard: heard, now: now)
    }

    /// Confirms everything for the client `device`.
    mutating func acknowledge() {
        scheduler.acknowledged(ClientKey(app: "app", client: "device"), upTo: head, now: now)
    }

    /// Returns a catalog with a kind `k` that depends on the item its parameter `a` names and has
    /// recommendations that depend on the entity `F`, a kind `l` that depends on `F`, a control `c`
    /// on items, and types `A` and `B` of Live Activities on items.
    static func catalog(
        also extra: [JSONValue] = [], content: String = "https://content"
    ) throws -> Catalog {
        let item: JSONValue = ["entity": "E", "match": ["id": "$a"]]
        let activities = ["A", "B"].map {
            activityDeclaration([item], type: $0, content: content)
        }
        return try CoreTests.catalog(
            [
                kind([item], recommendations: [["entity": "F"]]),
                kind([["entity": "F"]], named: "l"),
                [
                    "kind": "c", "configuration": "control", "intent": "I",
                    "dependsOn": [item],
                ],
            ] + extra, activities: activities)
    }

    mutating func put(also extra: [JSONValue] = [], content: String = "https://content") throws {
        head += 1
        let catalog = try Self.catalog(also: extra, content: content)
        apply(.catalog(decider.install(catalog, at: head)))
    }

    mutating func change(_ id: String? = nil, entity: String = "E", urgency: Urgency = .normal)
        throws
    {
        head += 1
        let decision = try decider.decide(Change(entity: entity, id: id), app: "app")
        apply(.change(decision, cause: nil), urgency: urgency)
    }

    /// Makes something stale, and returns the first push.
    mutating func order(
        changing id: String? = nil, entity: String = "E", urgency: Urgency = .normal
    ) throws -> DuePush {
        try change(id, entity: entity, urgency: urgency)
        let order = orders().first
        return try #require(order)
    }

    /// Starts an activity that shows the item `1` on the clients of an account.
    mutating func start(
        _ id: String, type: String = "A", account: String = "42", urgency: Urgency = .normal,
        ttl: Int64 = 900, acceptedAt: Int64 = 7
    ) throws {
        head += 1
        let start = try ActivityStart(
            [
                "id": .string(id), "type": .string(type),
                "attribute": .string("account:" + account), "attributes": ["a": "1"],
                "alert": ["title": "t"], "urgency": .string(urgency.rawValue),
                "ttl": .integer(ttl),
            ], limits: Limits())
        apply(.start(start), urgency: urgency, acceptedAt: acceptedAt)
    }

    mutating func apply(
        _ body: LogEntry.Body, urgency: Urgency = .normal, acceptedAt: Int64 = 7
    ) {
        scheduler.apply(
            LogEntry(
                sequence: head, app: "app", acceptedAt: acceptedAt, urgency: urgency, body: body),
            now: now)
    }

    /// The ids that the streams of clients have; others have sent everything.
    var sent: [ClientKey: UInt64] = [:]

    /// Returns the pushes ordered since the last call.
    mutating func orders() -> [DuePush] {
        answer()
        return scheduler.takeActions().compactMap {
            if case .push(let order) = $0 { order } else { nil }
        }
    }

    /// Answers what is asked about streams.
    private mutating func answer() {
        for (place, action) in scheduler.actions.enumerated().reversed() {
            guard case .readSent(let key) = action else { continue }
            scheduler.actions.remove(at: place)
            scheduler.received(sentUpTo: sent[key], about: key, now: now)
        }
    }

    /// Lets time pass without any other event.
    mutating func wait(_ milliseconds: Int64) {
        now += milliseconds
        scheduler.advance(now: now)
        answer()
    }

    /// Stores what changed.
    mutating func save() {
        for (key, client) in scheduler.takeChanged(limit: .max, now: now, wall: now) {
            saved[key] = client
        }
        clear = scheduler.clear
    }

    /// Returns what is stored of a client.
    func state(of key: ClientKey) throws -> PushScheduler.SavedClient? {
        try saved[key].map {
            try PushScheduler.SavedClient($0, budget: scheduler.terms.budget, now: now, wall: now)
        }
    }

    /// Kills the gateway and starts it again, with the clients that are registered.
    ///
    /// - Parameter heard: Their contact with another gateway meanwhile.
    mutating func restart(
        _ records: [ClientRecord], heard: PushScheduler.Evidence = .none
    ) throws {
        scheduler = PushScheduler(
            scheduler.shard.withoutStreams, terms: terms, hash: testHash, starts: scheduler.starts)
        for record in records {
            let state = try state(of: ClientKey(app: "app", client: record.client))
            scheduler.restore(
                record, app: "app", state, clear: state == nil ? 0 : clear, heard: heard, now: now,
                wall: now)
        }
        scheduler.lookAtRestored(now: now)
    }

    /// Makes the item `1` stale, and ends the first push so.
    mutating func push(_ verdict: APNsReaction.Verdict = .delivered) throws {
        try change("1")
        try finish(orders().first, verdict)
    }

    /// Ends a push. A webhook accepts it.
    mutating func finish(_ order: DuePush?, _ verdict: APNsReaction.Verdict = .delivered) throws {
        if case .webhook? = order?.address, verdict == .delivered {
            return try finish(order, .status(204))
        }
        try finish(order, result: .service(verdict))
    }

    mutating func finish(_ order: DuePush?, _ answer: WebhookResponse?) throws {
        try finish(order, result: .webhook(answer))
    }

    mutating func finish(_ order: DuePush?, result: PushResult, ends: Bool = false) throws {
        let number = try #require(order).number
        scheduler.finished(number, result, ends: ends, now: now, random: 0)
    }

    /// Lets time pass, after which nothing is pushed.
    mutating func expectSilence(
        _ milliseconds: Int64 = 86_400_000, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        wait(milliseconds)
        let made = orders()
        #expect(made.isEmpty, sourceLocation: sourceLocation)
    }

    /// Returns the push that is made after so many milliseconds, and no sooner.
    @discardableResult
    mutating func next(
        after milliseconds: Int64, sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> DuePush {
        expectSilence(milliseconds - 1, sourceLocation: sourceLocation)
        wait(1)
        let made = orders()
        #expect(made.count == 1, sourceLocation: sourceLocation)
        return try #require(made.first, sourceLocation: sourceLocation)
    }

    /// Returns what became of a change of an item; of the last one unless told otherwise.
    func standing(
        of item: Subscription, _ record: ClientRecord, at sequence: UInt64? = nil
    ) -> Outcome? {
        scheduler.standing(of: item, record, app: "app", at: sequence ?? head, now: now)
    }
}

// MARK: What is stored

private func stored(_ save: (inout SavedText) -> Void) -> JSONValue {
    var text = SavedText()
    text.object(nil, save)
    return (try? JSONValue(parsing: text.bytes)) ?? .null
}

extension DeliveryAttempts {
    func saved(_ sort: PushCategory, now: Int64, wall: Int64) -> JSONValue {
        stored { save(sort, to: &$0, now: now, wall: wall) }
    }
}

extension PushBudget {
    func saved(now: Int64, wall: Int64) -> JSONValue {
        stored { save(to: &$0, now: now, wall: wall) }
    }
}

extension WebhookSchedule {
    func saved(now: Int64, wall: Int64) -> JSONValue {
        stored { save(to: &$0, now: now, wall: wall) }
    }
}

extension Shard {
    /// The shard as a start finds it: with the versions, and without any stream.
    var withoutStreams: Shard {
        var shard = self
        for stream in shard.streams.indices {
            // An open slot, whatever its serial number.
            shard.close(StreamID(slot: UInt32(stream), serial: shard.streams[stream].serial))
        }
        return shard
    }
}

func apns(
    _ token: String = "aa", _ pushType: String = "widgets", environment: String = "production"
) -> DeliveryAddress {
    .apns(.init(pushType: pushType, token: token, environment: environment))
}

/// Returns a client that shows the items `ids`.
func device(
    _ ids: [String] = ["1"], named name: String = "device",
    delivery: [DeliveryAddress] = [apns()], recommendations: [RecommendationSet] = [],
    controls: [PlacedControl] = [], activities: [RegisteredActivity] = [],
    starts: [ActivityStartAddress] = [], attributes: [String: [String]] = [:],
    confirmed: [String: UInt64] = [:], since: UInt64 = 1, addressedAt: Int64 = 0
) -> ClientRecord {
    ClientRecord(
        client: name,
        registration: ClientRegistration(
            platform: "iOS", widgets: ids.map { widget(["a": .single($0)]) },
            recommendations: recommendations, controls: controls, delivery: delivery,
            activities: activities, activityStarts: starts),
        attributes: ClientAttributes(own: attributes), confirmed: confirmed, since: since,
        addressedAt: addressedAt)
}
