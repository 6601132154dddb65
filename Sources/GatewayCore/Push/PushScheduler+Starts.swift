import CatalogModel
import WidgetModel

/// Starts of Live Activities. The log is their queue: a category's cursor says which ones its
/// client has had.
extension PushScheduler {
    /// Records a start for the clients that it concerns.
    mutating func apply(_ start: ActivityStart, _ entry: LogEntry, now: Int64) {
        guard let attribute = start.attribute else { return }
        let key = key(entry.app, type: start.type, attribute.name, attribute.value)
        let slots = (startHolders[key] ?? []).sorted()
        for slot in slots {
            guard let client = lanes[slot]?.client else { continue }
            let delay = spread.delay(
                device: hash(client.client), sequence: entry.sequence, devices: slots.count,
                urgency: start.urgency, within: start.ttl * 500)
            lanes[slot]?.attempts.changed(
                at: entry.sequence, urgency: start.urgency, delay: delay, now: now)
            changed.insert(client)
        }
        for slot in slots { look(slot, now: now) }
    }

    /// Records whether starts concern the client of a category.
    mutating func hold(_ slot: Int, isOpen: Bool) {
        guard let lane = lanes[slot], let type = lane.sort.startedType else { return }
        for (name, values) in lane.record.attributes {
            for value in values {
                let key = key(lane.client.app, type: type, name, value)
                if isOpen {
                    startHolders[key, default: []].insert(slot)
                } else {
                    startHolders[key]?.remove(slot)
                    if startHolders[key]?.isEmpty == true { startHolders[key] = nil }
                }
            }
        }
    }

    private func key(_ app: String, type: String, _ name: String, _ value: String) -> UInt64 {
        hash([app, type, name, value].joined(separator: "\0"))
    }

    /// Returns the starts that a category has not had.
    func owedStarts(of lane: PushTarget, after sequence: UInt64) -> [RecentStart] {
        guard let type = lane.sort.startedType else { return [] }
        return starts.starts(
            of: lane.client.app, type: type, after: sequence, for: lane.record.attributes)
    }

    /// The number of failures, in about two minutes, after which the next start takes its turn.
    private static let startFailuresMax = 8

    /// Returns whether a start without content is not asked for again, because others wait for it.
    func makesWay(_ push: UnderWay, for failure: ContentFailure) -> Bool {
        guard failure.isAnswer, let sort = push.sorts.first,
            let lane = slot(of: push.client, sort).flatMap({ lanes[$0] }),
            let before = lane.attempts.address(push.address)?.failures
        else { return false }
        return lane.sort.isStart && before + 1 >= Self.startFailuresMax
            && !owedStarts(of: lane, after: push.position).isEmpty
    }

    /// Returns the next start to push to an address; `nil` if there is none, or if the catalog no
    /// longer declares its type.
    func nextStart(of lane: PushTarget, at id: UInt64) -> RecentStart? {
        let covered = lane.attempts.address(id)?.covered ?? 0
        guard
            let next = owedStarts(of: lane, after: max(lane.attempts.confirmed, covered)).first,
            let catalog = shard.ruleSet(of: lane.client.app)?.catalog
        else { return nil }
        return catalog.activity(type: next.start.type) == nil ? nil : next
    }
}

extension RecentStart {
    /// The content of its push.
    var said: (content: StaleSet, since: UInt64) {
        (StaleSet([InvalidationTarget(.activity, start.type)], sequence: sequence), sequence)
    }
}
