import GatewayCore
import GatewayDocuments
import GatewayPush
import GatewayStorage
import Synchronization
import WidgetModel

/// The state of a client's items: fresh, or stale since when, and why it has not been notified yet.
extension Explainer {
    /// Returns the state of a client's items; `nil` if it is not registered.
    package func client(_ key: ClientKey) async throws -> ExplainedClient? {
        guard registry.record(key) != nil else { return nil }
        let head = store.head
        try await settle(at: head)
        guard let seen = registry.client(key) else { return nil }
        let record = seen.record
        var items: [ItemStatus] = []
        var streams: [StreamStatus] = []
        var floor: UInt64 = 0
        var asked: Set<LoopIndex> = []
        for index in seen.loops.isEmpty ? [0] : seen.loops
        where asked.insert(index).inserted {
            let loop = loops.all[Int(index)]
            guard let part = try await loop.standing(of: record, app: key.app) else { continue }
            // A new catalog may arrive in between: then the two answers are about different items.
            let isSame = items.map(\.item) == part.items.map(\.item)
            items = isSame ? zip(items, part.items).map { $0.told(also: $1) } : part.items
            streams += part.streams
            floor = max(floor, part.floor)
        }
        let pushed = try await push?.standing(
            of: record, app: key.app, items.map { ($0.item, $0.version) })
        var document = try ExplainedClient(key, seen: seen)
        var times: [UInt64: Int64] = [:]
        for (index, standing) in items.enumerated() {
            let push = pushed?.items[index]
            let confirmed =
                standing.item.isSet
                ? record.confirmed[standing.item.kind] ?? 0
                : max(seen.hearing.confirmed, record.since, push?.confirmed ?? 0)
            try await describe(
                standing, seen, in: &document[standing.item.place], confirmed: confirmed,
                floor: floor, push: push?.push, &times)
        }
        let time = time
        document.head = head
        document.heardOf = seen.hearing.isHeardOf || !streams.isEmpty
        document.streams = streams.map(\.document)
        document.addresses = try pushed?.addresses.map { try $0.document(at: time) } ?? []
        return document
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
            let earliest = changes.recentChanges.withLock {
                $0.earliest(of: standing.keys, after: confirmed)
            }
            if let earliest {
                times[earliest.sequence] = earliest.acceptedAt
                stale.sequence = min(standing.version, earliest.sequence)
                stale.isEarliest = confirmed >= changes.startedAt
            }
        }
        stale.time = try await time(of: stale.sequence, &times).map(timestamp)
        item.stale = stale
        Outcome(
            of: max(standing.version, confirmed + 1), for: standing.item, of: seen.record,
            seen.hearing, stream: standing.telling, push: push
        ).describe(in: &item, at: time)
    }

    /// The acceptance time of a log entry; `nil` if the log no longer has it.
    private func time(
        of sequence: UInt64, _ times: inout [UInt64: Int64]
    ) async throws -> Int64? {
        if let known = times[sequence] { return known }
        let time = try await store.logRow(sequence)?.acceptedAt
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
            for index in items.indices { items[index].sleeps = true }
            return items
        }
        widgets = try items("widgets")
        recommendations = try items("recommendations")
        controls = try items("controls")
    }

    fileprivate subscript(_ place: Subscription.Place) -> ExplainedItem {
        get {
            switch place {
            case .widget(let index): widgets[index]
            case .recommendations(let index): recommendations[index]
            case .control(let index): controls[index]
            }
        }
        set {
            switch place {
            case .widget(let index): widgets[index] = newValue
            case .recommendations(let index): recommendations[index] = newValue
            case .control(let index): controls[index] = newValue
            }
        }
    }
}

extension StreamStatus {
    fileprivate var document: ExplainedStream {
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
        case .everything: document.for = "everything"
        case .timelines: document.for = "timelines"
        case .recommendations: document.for = "recommendations"
        case .control(let id):
            document.for = "control"
            document.control = id
        }
        document.delivered = delivered
        document.failures = failures
        document.underWay = isUnderWay
        document.retryAt = retryAt.map(time.text)
        document.unusable = absence?.rawValue
        return document
    }
}
