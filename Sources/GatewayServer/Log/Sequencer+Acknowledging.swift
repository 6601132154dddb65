import CoreMetrics
import GatewayCore
import Synchronization
import WidgetModel

/// What clients say they have done, and how long that took.
extension Sequencer {
    /// Takes a client's word that it rebuilt up to `sequence`.
    ///
    /// - Parameter epoch: The epoch that was current when its cursor was judged.
    func acknowledge(
        _ key: ClientKey, at sequence: UInt64, in epoch: EpochID, recommendations: [String],
        rebuilt: [Rebuilt]
    ) async throws {
        guard let record = registry.record(key) else { throw Problem.unknownClient }
        let now = desk.wallMilliseconds()
        let claims = try await claims(rebuilt, of: record, key, upTo: sequence)
        guard let answer = registry.acknowledge(key, upTo: sequence, claims, now: now)
        else { throw Problem.unknownClient }
        registry.noteSeen(key)
        if record.isPushable { push?.submit([.acknowledged(key, upTo: sequence, in: epoch)]) }
        metrics.acknowledgements.increment()
        for case let milliseconds? in rebuilt.map(\.milliseconds) {
            // A client's word: one that is wrong must not spoil the sum for good.
            metrics.rebuildSeconds.record(min(milliseconds / 1000, Self.rebuildSecondsMax))
        }
        observe(answer.confirmed, answer.channel)
        guard !recommendations.isEmpty else { return }
        try await confirm(key, recommendations, upTo: sequence)
    }

    /// Longer rebuilds count as so long.
    private static let rebuildSecondsMax = 3_600.0

    /// A client resumes from `sequence`, for all that it holds.
    ///
    /// - Parameter channel: By which it hears from now on; `nil` for as it did.
    func resumed(_ key: ClientKey, from sequence: UInt64, _ channel: DeliveryChannel?) {
        let confirmed = registry.resume(key, from: sequence)
        guard !confirmed.isEmpty else { return }
        observe(confirmed, channel ?? registry.channel(key))
    }

    private func observe(
        _ confirmed: [ReportedRebuilds.Confirmation], _ channel: DeliveryChannel
    ) {
        for rebuild in confirmed {
            metrics.freshnessConfirmed[channel].record(
                Double(rebuild.milliseconds) / 1000, kind: rebuild.kind)
            tracing?.confirmed(rebuild, channel)
        }
    }

    /// What a client says it rebuilt, of what is registered, each once: what it says beside that
    /// costs nothing.
    private func claims(
        _ rebuilt: [Rebuilt], of record: ClientRecord, _ key: ClientKey, upTo sequence: UInt64
    ) async throws -> [ReportedRebuilds.Claim] {
        let times = Dictionary(rebuilt.map { ($0.name, 1) }, uniquingKeysWith: +)
        var copies: [TimelineName: Int] = [:]
        var widgets: [(name: TimelineName, widget: ConfiguredWidget)] = []
        for widget in rebuilt.isEmpty ? [] : record.registration.widgets {
            let name = TimelineName(widget.kind, widget.parameters)
            guard times[name] != nil else { continue }
            if copies[name] == nil { widgets.append((name, widget)) }
            copies[name, default: 0] += 1
        }
        guard !widgets.isEmpty, let (floor, loop) = registry.acknowledged(key) else { return [] }
        let told: [[RecentChanges.Hit]]
        if let loop {
            let keys = try await loop.toldKeys(
                of: widgets.map(\.widget), of: record, app: key.app, after: floor)
            told = recentChanges.withLock { recent in
                keys.map { recent.told($0, after: floor) }
            }
        } else {
            told = toldByPoll(widgets.map(\.widget), of: record, key.app, floor, upTo: sequence)
        }
        return zip(widgets, told).map { widget, told in
            ReportedRebuilds.Claim(
                name: widget.name, told: told, copies: copies[widget.name] ?? 1,
                times: times[widget.name] ?? 1)
        }
    }

    /// The latest change of each widget up to the client's cursor, which is all it was told of; or
    /// of all, where that is from a stream that has ended.
    private func toldByPoll(
        _ widgets: [ConfiguredWidget], of record: ClientRecord, _ app: String, _ floor: UInt64,
        upTo sequence: UInt64
    ) -> [[RecentChanges.Hit]] {
        guard let ruleSet = state.withLock({ $0.decider.ruleSets[app] }) else {
            return widgets.map { _ in [] }
        }
        func told(upTo last: UInt64) -> [[ToldKey]] {
            widgets.map {
                ruleSet.toldKeys(of: $0, attributes: record.attributes, upTo: last)
            }
        }
        let (covered, all) = (told(upTo: sequence), told(upTo: .max))
        return recentChanges.withLock { recent in
            zip(covered, all).map { covered, all in
                let told = recent.told(covered, after: floor)
                return told.isEmpty ? recent.told(all, after: floor) : told
            }
        }
    }
}
