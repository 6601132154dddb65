import DequeModule
import WidgetModel

/// A start of Live Activities on clients, in the log.
package struct RecentStart: Sendable {
    package let sequence: UInt64
    /// The time from which it is no longer pushed, ms since 1970.
    package let expiresAt: Int64
    package let start: ActivityStart

    /// Its type and attribute in one text.
    fileprivate var name: String {
        start.attribute.map { Self.name(of: start.type, $0.name, $0.value) } ?? ""
    }

    fileprivate static func name(of type: String, _ name: String, _ value: String) -> String {
        [type, name, value].joined(separator: "\0")
    }
}

/// The starts that may still be pushed, by app.
package struct RecentStarts: Sendable {
    /// The maximum number of unexpired starts of an app. Twice as many are kept, because more are
    /// accepted while others wait to be applied; beyond that the oldest are dropped.
    package static let countMax = 1_000

    /// In order of their sequences.
    private var lists: [String: Deque<RecentStart>] = [:]
    /// The same by app, and by type and attribute.
    private var named: [String: [String: [RecentStart]]] = [:]

    package init() {}

    /// Applies the next entry of the log.
    package mutating func apply(_ entry: LogEntry) {
        switch entry.body {
        case .start(let start) where start.attribute != nil:
            let expiresAt = entry.acceptedAt.later(by: start.ttl * 1_000)
            let next = RecentStart(sequence: entry.sequence, expiresAt: expiresAt, start: start)
            remove(of: entry.app) { $0.expiresAt <= entry.acceptedAt }
            lists[entry.app, default: []].append(next)
            named[entry.app, default: [:]][next.name, default: []].append(next)
            if lists[entry.app]?.count ?? 0 > 2 * Self.countMax,
                let first = lists[entry.app]?.first?.sequence
            {
                remove(of: entry.app) { $0.sequence == first }
            }
        case .removal: (lists[entry.app], named[entry.app]) = (nil, nil)
        case .change, .catalog, .reload, .start, .registration: break
        }
    }

    private mutating func remove(of app: String, where isOver: (RecentStart) -> Bool) {
        for name in Set((lists[app] ?? []).filter(isOver).map(\.name)) {
            named[app]?[name]?.removeAll(where: isOver)
            if named[app]?[name]?.isEmpty ?? false { named[app]?[name] = nil }
        }
        lists[app]?.removeAll(where: isOver)
    }

    /// Returns the number of an app's starts that have not expired.
    ///
    /// - Parameter wall: The time in ms since 1970.
    package func count(of app: String, wall: Int64) -> Int {
        lists[app]?.count { $0.expiresAt > wall } ?? 0
    }

    /// Returns an app's starts of a type after a sequence for a client with these attributes.
    func starts(
        of app: String, type: String, after sequence: UInt64, for attributes: [String: [String]]
    ) -> [RecentStart] {
        guard let named = named[app] else { return [] }
        var found: [RecentStart] = []
        for (name, values) in attributes {
            for value in values { found += named[RecentStart.name(of: type, name, value)] ?? [] }
        }
        return found.filter {
            $0.sequence > sequence && $0.start.type == type && $0.start.concerns(attributes)
        }.sorted { $0.sequence < $1.sequence }
    }
}
