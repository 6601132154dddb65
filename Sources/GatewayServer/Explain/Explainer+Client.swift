import GatewayCore
import GatewayStorage
import Synchronization
import WidgetModel

/// How everything of one client stands: fresh, or stale since when, and why it was not told yet.
extension Explainer {
    /// A client's standing as JSON; `nil` when it is not registered.
    func client(_ key: ClientKey) async throws -> JSONValue? {
        guard sequencer.registry.record(key) != nil else { return nil }
        let head = sequencer.store.head
        try await settle(at: head)
        guard let seen = sequencer.registry.client(key) else { return nil }
        let record = seen.record
        var items: [ItemStanding] = []
        var streams: [StreamStanding] = []
        var floor: UInt64 = 0
        var asked: [ShardLoop] = []
        for loop in seen.loops.isEmpty ? [sequencer.loops[0]] : seen.loops
        where !asked.contains(where: { $0 === loop }) {
            asked.append(loop)
            guard let part = try await loop.standing(of: record, app: key.app) else { continue }
            // A catalog may come between: then both answers are not about the same things.
            let isSame = items.map(\.item) == part.items.map(\.item)
            items = isSame ? zip(items, part.items).map { $0.told(also: $1) } : part.items
            streams += part.streams
            floor = max(floor, part.floor)
        }
        let pushed = try await sequencer.push?.standing(
            of: record, app: key.app, items.map { ($0.item, $0.version) })
        var shown: [HeldItem.Place: JSONValue] = [:]
        var times: [UInt64: Int64] = [:]
        for (index, standing) in items.enumerated() {
            let push = pushed?.items[index]
            let confirmed =
                standing.item.isSet
                ? record.confirmed[standing.item.kind] ?? 0
                : max(seen.hearing.confirmed, record.since, push?.confirmed ?? 0)
            shown[standing.item.place] = try await json(
                standing, seen, confirmed: confirmed, floor: floor, push: push?.push, &times)
        }
        return document(key, seen, head, shown, streams, pushed?.addresses ?? [])
    }

    private func json(
        _ standing: ItemStanding, _ seen: Registry.Seen, confirmed: UInt64, floor: UInt64,
        push: Outcome?, _ times: inout [UInt64: Int64]
    ) async throws -> JSONValue {
        guard standing.version > confirmed || confirmed < floor else { return ["fresh": true] }
        var (since, isEarliest) = (standing.version, false)
        if standing.version > confirmed {
            let earliest = sequencer.recentChanges.withLock {
                $0.earliest(of: standing.keys, after: confirmed)
            }
            if let earliest {
                times[earliest.sequence] = earliest.acceptedAt
                since = min(since, earliest.sequence)
                isEarliest = confirmed >= sequencer.startedAt
            }
        }
        var stale: JSONObject = [
            "sequence": .integer(Int64(clamping: since)), "isEarliest": .bool(isEarliest),
            "latest": .integer(Int64(clamping: standing.version)),
            "cause": .string(
                standing.version > confirmed ? standing.cause.rawValue : "forgotten"),
        ]
        if let time = try await time(of: since, &times) { stale["time"] = .string(timestamp(time)) }
        let outcome = Outcome(
            of: max(standing.version, confirmed + 1), for: standing.item, of: seen.record,
            seen.hearing, stream: standing.telling, push: push)
        var object: JSONObject = ["fresh": false, "stale": .object(stale)]
        for member in outcome.json(time).objectValue?.members ?? [] {
            object[member.name] = member.value
        }
        return .object(object)
    }

    /// When an entry of the log was accepted; `nil` where the log has it no more.
    private func time(
        of sequence: UInt64, _ times: inout [UInt64: Int64]
    ) async throws -> Int64? {
        if let known = times[sequence] { return known }
        let time = try await sequencer.store.logRow(sequence)?.acceptedAt
        if let time { times[sequence] = time }
        return time
    }

    private func document(
        _ key: ClientKey, _ seen: Registry.Seen, _ head: UInt64,
        _ shown: [HeldItem.Place: JSONValue], _ streams: [StreamStanding],
        _ addresses: [PushDesk.AddressStanding]
    ) -> JSONValue {
        let registered = seen.record.registration.json(maskingTokens: true).objectValue ?? [:]
        func list(_ name: String, _ place: (Int) -> HeldItem.Place) -> JSONValue {
            let members = registered[name]?.arrayValue ?? []
            return .array(
                members.enumerated().map { index, member in
                    guard var object = member.objectValue else { return member }
                    // What the catalog does not declare, or an empty set, waits for nothing.
                    let standing = shown[place(index)]?.objectValue ?? ["sleeps": true]
                    for member in standing.members { object[member.name] = member.value }
                    return .object(object)
                })
        }
        let time = time
        return [
            "client": .string(key.client), "platform": registered["platform"] ?? .null,
            "head": .integer(Int64(clamping: head)),
            "since": .integer(Int64(clamping: seen.record.since)),
            "confirmed": .integer(Int64(clamping: seen.hearing.confirmed)),
            "heardOf": .bool(seen.hearing.isHeardOf || !streams.isEmpty),
            "widgets": list("widgets") { .widget($0) },
            "recommendations": list("recommendations") { .recommendations($0) },
            "controls": list("controls") { .control($0) },
            "streams": .array(streams.map(\.json)),
            "addresses": .array(addresses.map { $0.json(time) }),
        ]
    }
}

extension StreamStanding {
    fileprivate var json: JSONValue {
        var object: JSONObject = [
            "watermark": .integer(Int64(clamping: watermark)), "lagging": .bool(isLagging),
        ]
        if let kinds { object["kinds"] = .array(kinds.sorted().map { .string($0) }) }
        return .object(object)
    }
}

extension PushDesk.AddressStanding {
    fileprivate func json(_ time: MonotonicTime) -> JSONValue {
        // As registrations show it, tokens masked.
        let shown = ClientRegistration(platform: "", delivery: [address])
            .json(maskingTokens: true).objectValue?["delivery"]?.arrayValue?.first
        var object = shown?.objectValue ?? [:]
        switch sort {
        case .everything: object["for"] = "everything"
        case .timelines: object["for"] = "timelines"
        case .recommendations: object["for"] = "recommendations"
        case .control(let id):
            object["for"] = "control"
            object["control"] = .string(id)
        }
        object["delivered"] = .integer(Int64(clamping: delivered))
        object["failures"] = .integer(Int64(failures))
        object["underWay"] = .bool(isUnderWay)
        if let retryAt { object["retryAt"] = .string(time.text(retryAt)) }
        if let absence { object["unusable"] = .string(absence.rawValue) }
        return .object(object)
    }
}
