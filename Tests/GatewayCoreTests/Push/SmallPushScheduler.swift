import CatalogModel
import Testing
import WidgetModel

@testable import GatewayCore
@testable import GatewayPush

/// The smallest gateway that pushes: a push scheduler with a log writer in front of it, and a
/// clock.
struct SmallPushScheduler {
    var decider = Decider(hash: testHash, limits: Limits())
    var scheduler: PushScheduler
    var head: UInt64 = 0
    var now: Int64 = 1_000_000
    let terms: PushScheduler.Terms

    /// What the store has, as a gateway with a data directory keeps it.
    var saved: [ClientKey: PushScheduler.SavedClient] = [:]
    var clear: UInt64 = 0

    init(
        terms: PushScheduler.Terms = PushScheduler.Terms(), limits: CoreLimits = CoreLimits()
    ) throws {
        self.terms = terms
        scheduler = PushScheduler(Shard(floor: 0, limits: limits), terms: terms, hash: testHash)
        try put()
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
        return try GatewayCoreTests.catalog(
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

    /// Kills the gateway and starts it again, with the clients that are registered.
    ///
    /// - Parameter heard: Their contact with another gateway meanwhile.
    mutating func restart(_ records: [ClientRecord], heard: PushScheduler.Evidence = .none) {
        scheduler = PushScheduler(
            scheduler.shard.withoutStreams, terms: terms, hash: testHash, starts: scheduler.starts)
        for record in records {
            let state = saved[ClientKey(app: "app", client: record.client)]
            scheduler.restore(
                record, app: "app", state, clear: state == nil ? 0 : clear, heard: heard, now: now,
                wall: now)
        }
        scheduler.lookAtRestored(now: now)
    }

    mutating func finish(_ order: DuePush?, _ verdict: APNsReaction.Verdict = .delivered) throws {
        scheduler.finished(try #require(order).number, .apns(verdict), now: now, random: 0)
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

/// Returns a push address of a device.
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
