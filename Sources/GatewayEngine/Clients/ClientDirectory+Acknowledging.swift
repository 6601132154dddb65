import CoreMetrics
import GatewayCore
import GatewayOperations
import NIOCore
import Synchronization
import WidgetModel

/// Acknowledgements: the rebuilds that clients report, and the time they took.
extension ClientDirectory {
    /// Records a client's report that it rebuilt up to `sequence`.
    ///
    /// - Parameter epoch: The era in which its cursor was judged.
    package func acknowledge(
        _ key: ClientKey, at sequence: UInt64, in epoch: EpochID, recommendations: [String],
        rebuilt: [RebuildReport]
    ) async throws {
        guard let record = registry.record(key) else { throw EngineError.unknownClient }
        let now = clock.wallMilliseconds()
        let claims = try await claims(rebuilt, of: record, key, upTo: sequence)
        guard let answer = registry.acknowledge(key, upTo: sequence, claims, now: now)
        else { throw EngineError.unknownClient }
        registry.noteSeen(key, now: now)
        if record.isPushable { push?.submit([.acknowledged(key, upTo: sequence, in: epoch)]) }
        metrics.acknowledgements.increment()
        for case let milliseconds? in rebuilt.map(\.milliseconds) {
            // The value comes from the client: a wrong one must not spoil the sum for good.
            metrics.rebuildSeconds.record(min(milliseconds / 1000, Self.rebuildSecondsMax))
        }
        let unchanged = Set(rebuilt.lazy.filter(\.isUnchanged).map(\.name))
        // A rebuild that no change caused is none of the gateway's.
        for claim in claims where unchanged.contains(claim.name) && !claim.told.isEmpty {
            metrics.needlessReload(of: claim.name.kind, "unchanged")
        }
        observe(answer.confirmed, answer.channel)
        guard !recommendations.isEmpty else { return }
        let isRegistered = try await confirm(key) { _ in (recommendations, sequence) }
        guard isRegistered else { throw EngineError.unknownClient }
    }

    /// Longer rebuilds count as this many seconds.
    private static let rebuildSecondsMax = 3_600.0

    /// Records that a client asks for a stream. The store records it once the stream is open.
    package func arrived(_ key: ClientKey) {
        registry.noteSeen(key, now: clock.wallMilliseconds(), isStored: true)
    }

    /// Records that a client resumes from `sequence`, for all its subscriptions.
    ///
    /// - Parameter channel: The channel that notifies it from now on; `nil` if it is unchanged.
    package func resumed(_ key: ClientKey, from sequence: UInt64, _ channel: DeliveryChannel?) {
        let confirmed = registry.resume(key, from: sequence)
        guard !confirmed.isEmpty else { return }
        observe(confirmed, channel ?? registry.channel(key))
    }

    private func observe(
        _ confirmed: [ReportedRebuilds.Confirmation], _ channel: DeliveryChannel
    ) {
        for rebuild in confirmed {
            metrics.freshnessConfirmed[channel]?.record(
                Double(rebuild.milliseconds) / 1000, kind: rebuild.kind)
            tracing?.confirmed(rebuild, channel)
        }
    }

    /// Returns a client's reports about timelines that are registered, each once. Reports about
    /// others cost nothing.
    private func claims(
        _ rebuilt: [RebuildReport], of record: ClientRecord, _ key: ClientKey,
        upTo sequence: UInt64
    ) async throws -> [ReportedRebuilds.TimelineReport] {
        let times = Dictionary(rebuilt.map { ($0.name, 1) }, uniquingKeysWith: +)
        var copies: [TimelineID: Int] = [:]
        var widgets: [(name: TimelineID, widget: ConfiguredWidget)] = []
        for widget in rebuilt.isEmpty ? [] : record.registration.widgets {
            let name = TimelineID(widget.kind, widget.parameters)
            guard times[name] != nil else { continue }
            if copies[name] == nil { widgets.append((name, widget)) }
            copies[name, default: 0] += 1
        }
        guard !widgets.isEmpty, let (floor, loop) = registry.acknowledged(key) else { return [] }
        let told: [[RecentChanges.Hit]]
        if let loop {
            let keys = try await loops.all[Int(loop)].toldKeys(
                of: widgets.map(\.widget), of: record, app: key.app, after: floor)
            told = accepted.recent.withLock { recent in
                keys.map { recent.told($0, after: floor) }
            }
        } else {
            told = toldByPoll(widgets.map(\.widget), of: record, key.app, floor, upTo: sequence)
        }
        return zip(widgets, told).map { widget, told in
            ReportedRebuilds.TimelineReport(
                name: widget.name, told: told, copies: copies[widget.name] ?? 1,
                times: times[widget.name] ?? 1)
        }
    }

    /// Returns the latest change of each widget up to the client's cursor, which covers everything
    /// that polls delivered; or the latest of all, if the cursor is from a stream that has ended.
    private func toldByPoll(
        _ widgets: [ConfiguredWidget], of record: ClientRecord, _ app: String, _ floor: UInt64,
        upTo sequence: UInt64
    ) -> [[RecentChanges.Hit]] {
        guard let ruleSet = catalogs.ruleSet(of: app) else { return widgets.map { _ in [] } }
        func told(upTo last: UInt64) -> [[NotifiedKey]] {
            widgets.map {
                ruleSet.toldKeys(of: $0, attributes: record.attributes, upTo: last)
            }
        }
        let (covered, all) = (told(upTo: sequence), told(upTo: .max))
        return accepted.recent.withLock { recent in
            zip(covered, all).map { covered, all in
                let told = recent.told(covered, after: floor)
                return told.isEmpty ? recent.told(all, after: floor) : told
            }
        }
    }

    // MARK: Recommendation sets

    /// Advances the confirmed position of recommendation sets that are owed nothing, before the log
    /// or the version window drops the entries that prove it. Otherwise an unchanged set would be
    /// sent again only because time passed. Returns when all clients were checked.
    package func confirmUnowed(below sequence: UInt64) async throws {
        let (position, windows) = (loops.all[0].position, loops.all[0].figures.windows)
        let bounds = Dictionary(
            windows.map { ($0.app, max(sequence, $0.floor / 2 + position / 2)) },
            uniquingKeysWith: { max($0, $1) })
        for part in 0..<Registry.partCount {
            var clients: [(key: ClientKey, record: ClientRecord, bound: UInt64)] = []
            registry.look(part: part) { key, record in
                let bound = bounds[key.app] ?? sequence
                guard record.confirmed.values.contains(where: { $0 < bound }) else { return }
                clients.append((key, record, bound))
            }
            // As many at once as a loop checks in one turn; the store commits them together.
            for portion in clients.portions(
                costing: ShardLoop.itemsAtOnce, each: \.record.itemCost)
            {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for (key, record, bound) in portion {
                        group.addTask {
                            // Most sets are still owed; then no registration has to be read.
                            guard
                                try await self.unowedSets(of: record, app: key.app, below: bound)
                                    != nil
                            else { return }
                            // A client removed in the meantime is owed nothing.
                            _ = try await self.confirm(key) {
                                try await self.unowedSets(of: $0, app: key.app, below: bound)
                            }
                        }
                    }
                    try await group.waitForAll()
                }
            }
        }
    }

    /// Returns the kinds of a registration's recommendation sets that are confirmed below
    /// `sequence` and owed nothing, and the sequence up to which that holds; `nil` if there are
    /// none.
    private func unowedSets(
        of record: ClientRecord, app: String, below sequence: UInt64
    ) async throws -> (kinds: [String], position: UInt64)? {
        let shard = loops.all[0]
        let answer = try await shard.loop.submit { shard.owedSets(of: record, app: app) }.get()
        guard let (owed, position) = answer else { return nil }
        let quiet = record.confirmed.filter { $0.value < sequence && !owed.contains($0.key) }
        return quiet.isEmpty ? nil : (quiet.keys.sorted(), position)
    }

    /// Records that a client has built some of its recommendation sets. Returns when every shard
    /// has applied it.
    ///
    /// - Parameter judge: Returns the kinds of those sets for a given registration, and the
    ///   position at which they were judged; `nil` for none. Called again if another registration,
    ///   which may be owed more, is in force when the result is stored.
    /// - Returns: Whether the client is registered.
    func confirm(
        _ key: ClientKey,
        judge: (ClientRecord) async throws -> (kinds: [String], position: UInt64)?
    ) async throws -> Bool {
        var isRegistered = true
        _ = try await replaceRegistration(of: key, confirms: true) { base in
            guard var stored = base.stored else {
                isRegistered = false
                return nil
            }
            guard let (judged, position) = try await judge(stored.record(of: key.client)) else {
                return nil
            }
            let kinds = judged.filter { (stored.confirmed[$0] ?? position) < position }
            guard !kinds.isEmpty else { return nil }
            for kind in kinds { stored.confirmed[kind] = position }
            return RegistrationReplacement(stored, stored.record(of: key.client))
        }
        return isRegistered
    }
}

/// A client's report that it rebuilt a timeline.
package struct RebuildReport: Sendable {
    let name: TimelineID
    /// The duration; `nil` if the client does not report it.
    let milliseconds: Double?
    /// Whether the timeline is equal to the one before.
    let isUnchanged: Bool

    package init(name: TimelineID, milliseconds: Double?, isUnchanged: Bool = false) {
        self.name = name
        self.milliseconds = milliseconds
        self.isUnchanged = isUnchanged
    }
}
