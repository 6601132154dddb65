import GatewayCore
import GatewayDocuments
import GatewayStorage
import Synchronization
import WidgetModel

/// The state of a client's items: fresh, or stale since when, and why it has not been notified yet.
extension Explainer {
    /// Returns the state of a client's items; `nil` if it is not registered.
    package func client(_ key: ClientKey) async throws -> ExplainedClient? {
        guard engine.registry.record(key) != nil else { return nil }
        let head = engine.store.head
        try await settle(at: head)
        guard let seen = engine.registry.client(key) else { return nil }
        let record = seen.record
        var items: [ItemStatus] = []
        var streams: [StreamStatus] = []
        var floor: UInt64 = 0
        var asked: Set<LoopIndex> = []
        for index in seen.loops.isEmpty ? [0] : seen.loops
        where asked.insert(index).inserted {
            let loop = engine.loops.all[Int(index)]
            guard let part = try await loop.standing(of: record, app: key.app) else { continue }
            // A new catalog may arrive in between: then the two answers are about different items.
            let isSame = items.map(\.item) == part.items.map(\.item)
            items = isSame ? zip(items, part.items).map { $0.told(also: $1) } : part.items
            streams += part.streams
            floor = max(floor, part.floor)
        }
        for node in seen.nodes {
            let others = await engine.leader?.streams(of: [key], at: node).first ?? []
            streams += others
            items = items.map { item in
                others.reduce(item) { $0.told($1.telling(of: $0.item.kind, at: $0.version)) }
            }
        }
        let pushed = try await engine.push?.standing(
            of: record, app: key.app, items.map { ($0.item, $0.version) })
        var document = try ExplainedClient(key, seen: seen)
        let ruleSet = engine.catalogs.ruleSet(of: key.app)
        var times: [UInt64: Int64] = [:]
        for (index, standing) in items.enumerated() {
            let push = pushed?.items[index]
            let isPushed = push?.push != nil && standing.item.isPushed(in: record.registration)
            let confirmed =
                standing.item.isSet
                ? record.confirmed[standing.item.kind] ?? 0
                : max(
                    isPushed ? 0 : seen.hearing.confirmed, record.since, push?.confirmed ?? 0)
            try await describe(
                standing, seen, in: &document[standing.item.place], confirmed: confirmed,
                floor: isPushed ? 0 : floor, push: push?.push, &times)
            if let ruleSet {
                document[standing.item.place].describeLacking(
                    ruleSet.attributeNeeds(ofKind: standing.item.kind, sets: standing.item.isSet),
                    attributes: record.attributes)
            }
        }
        let time = time
        document.head = head
        document.heardOf = seen.hearing.isHeardOf || !streams.isEmpty || seen.isSeen
        document.lastSeen = seen.lastSeen(at: time)
        var warnings = Faults()
        ruleSet?.addWarnings(about: record, to: &warnings)
        if !warnings.isEmpty { document.warnings = warnings.list }
        document.streams = streams.map(\.document)
        document.addresses =
            try pushed?.addresses.map { address in
                var document = try address.document(at: time)
                if document.unusable != nil, case .apns(let apns) = address.address {
                    document.problem =
                        engine.push?.events.pairingProblem(
                            app: key.app, channel: apns.pushType, registeredTopic: apns.topic)
                        ?? document.problem
                }
                return document
            } ?? []
        let removed = try await removedAddresses(of: key, since: record.addressedAt)
        if !removed.isEmpty { document.removedAddresses = removed }
        return document
    }

    /// Returns the open streams of a client at this gateway.
    package func streams(of key: ClientKey) async throws -> [StreamStatus] {
        guard let seen = engine.registry.client(key) else { return [] }
        var streams: [StreamStatus] = []
        for index in Set(seen.loops).sorted() {
            let loop = engine.loops.all[Int(index)]
            streams += try await loop.standing(of: seen.record, app: key.app)?.streams ?? []
        }
        return streams
    }

    /// The maximum number of removed addresses that are shown.
    private static let removedMax = 8

    /// Returns the addresses that were removed from a client's registration since a time, in
    /// milliseconds since 1970, as far as the store still has the attempts that removed them.
    private func removedAddresses(
        of key: ClientKey, since: Int64
    ) async throws -> [ExplainedClient.RemovedAddress] {
        guard engine.push != nil else { return [] }
        var query = PushAttemptQuery(app: key.app)
        query.client = key.client
        query.outcome = PushOutcome.dropped.rawValue
        return try await engine.store.pushAttempts(query, limit: Self.removedMax)
            .filter { $0.at >= since }.map { attempt in
                var address = ExplainedClient.RemovedAddress()
                (address.channel, address.time) = (attempt.channel, timestamp(attempt.at))
                address.reason = attempt.reason
                return address
            }
    }

    private func describe(
        _ standing: ItemStatus, _ seen: Registry.Seen, in item: inout ExplainedItem,
        confirmed: UInt64, floor: UInt64, push: Outcome?, _ times: inout [UInt64: Int64]
    ) async throws {
        item.sleeps = nil
        item.fresh = standing.version <= confirmed && confirmed >= floor
        guard item.fresh == false else { return }
        var stale = ExplainedItem.Staleness()
        stale.sequence = standing.version
        stale.latest = standing.version
        stale.cause = standing.version > confirmed ? standing.cause.rawValue : "forgotten"
        if standing.version > confirmed {
            let earliest = engine.changes.accepted.recent.withLock {
                $0.earliest(of: standing.keys, after: confirmed)
            }
            if let earliest {
                times[earliest.sequence] = earliest.acceptedAt
                stale.sequence = min(standing.version, earliest.sequence)
                stale.isEarliest = confirmed >= engine.changes.accepted.startedAt
            }
        }
        stale.time = try await time(of: stale.sequence, &times).map(timestamp)
        item.stale = stale
        let isPushed = standing.item.isPushed(in: seen.record.registration)
        let outcome =
            (isPushed ? push : nil)
            ?? Outcome(
                of: max(standing.version, confirmed + 1), for: standing.item, of: seen.record,
                seen.hearing, stream: standing.telling, push: push)
        outcome.describe(in: &item, at: time)
    }

    /// The acceptance time of a log entry; `nil` if the log no longer has it.
    private func time(
        of sequence: UInt64, _ times: inout [UInt64: Int64]
    ) async throws -> Int64? {
        if let known = times[sequence] { return known }
        let time = try await engine.store.logRow(sequence)?.acceptedAt
        if let time { times[sequence] = time }
        return time
    }
}

extension ExplainedClient {
    /// Creates the document of a registration with all items asleep; undeclared kinds and empty
    /// sets stay so.
    fileprivate init(_ key: ClientKey, seen: Registry.Seen) throws {
        self.init()
        client = key.client
        since = seen.record.since
        confirmed = seen.hearing.confirmed
        let registration = seen.record.registration
        platform = registration.platform
        let json = registration.json(maskingTokens: true).objectValue ?? [:]
        func items(_ name: String) throws(Faults) -> [ExplainedItem] {
            var items = try [ExplainedItem](decoding: json[name] ?? [])
            for index in items.indices {
                items[index].sleeps = true
                // An activity's broadcast channel is not its notification channel.
                items[index].channel = nil
            }
            return items
        }
        widgets = try items("widgets")
        recommendations = try items("recommendations")
        controls = try items("controls")
        if !registration.activities.isEmpty { activities = try items("activities") }
    }

    fileprivate subscript(_ place: Subscription.Place) -> ExplainedItem {
        get {
            switch place {
            case .widget(let index): widgets[index]
            case .recommendations(let index): recommendations[index]
            case .control(let index): controls[index]
            case .activity(let index): (activities ?? [])[index]
            }
        }
        set {
            switch place {
            case .widget(let index): widgets[index] = newValue
            case .recommendations(let index): recommendations[index] = newValue
            case .control(let index): controls[index] = newValue
            case .activity(let index): activities?[index] = newValue
            }
        }
    }
}

extension ExplainedItem {
    /// Sets the members about client attributes that the item's rules bind to.
    fileprivate mutating func describeLacking(
        _ needs: AttributeNeeds, attributes: [String: [String]]
    ) {
        let lacked = needs.lacked(by: attributes)
        guard !lacked.isEmpty else { return }
        lacks = lacked
        guard needs.areLacking(in: attributes) else { return }
        dependsOnNothing = true
        // A reload by an operator makes it stale nevertheless.
        if fresh == true { fresh = nil }
    }
}

extension StreamStatus {
    package var document: ExplainedStream {
        var document = ExplainedStream()
        document.watermark = watermark
        document.lagging = isLagging
        document.kinds = kinds?.sorted()
        return document
    }
}

extension PushScheduler.AddressStatus {
    fileprivate func document(at time: MonotonicTime) throws(Faults) -> ExplainedAddress {
        // In the form that registrations show, with tokens masked.
        let shown = ClientRegistration(platform: "", delivery: [address])
            .json(maskingTokens: true).objectValue?["delivery"]?.arrayValue?.first
        var document = try ExplainedAddress(decoding: shown ?? [:])
        switch sort {
        case .timelines: document.for = "timelines"
        case .recommendations: document.for = "recommendations"
        case .control(let id):
            document.for = "control"
            document.control = id
        case .activity(let id):
            document.for = "activity"
            document.activity = id
        case .start(let type):
            document.for = "start"
            document.activity = type
        }
        document.problem = failing.map {
            "The source of content of \($0.type) fails: \($0.failure.rawValue)."
        }
        document.delivered = delivered
        document.cause = cause?.rawValue
        document.failures = failures
        document.underWay = isUnderWay
        document.retryAt = retryAt.map(time.text)
        document.unusable = absence?.rawValue
        document.budget = savings.map { savings in
            var budget = ExplainedAddress.Budget()
            (budget.left, budget.reserved) = (savings.left, savings.reserved)
            (budget.burst, budget.perDay) = (savings.terms.burst, savings.terms.perDay)
            budget.refillsAt = savings.refillsAt.map(time.text)
            return budget
        }
        return document
    }
}
