import CatalogModel
import GatewayCore
import GatewayStorage
import ServiceLifecycle
import Synchronization
import WidgetModel

/// Finds, for each app, the oldest change that a client depends on and has not confirmed.
///
/// It checks every client's own keys, as a poll does, a few clients at a time, with pauses so long
/// that a million clients cost a few hundredths of one processor; a sweep then takes minutes.
package final class StalenessScanner: Service {
    /// The acceptance time of an app's oldest unconfirmed change, in milliseconds since 1970; `nil`
    /// if there is none.
    package struct Oldest: Sendable, Equatable {
        /// For clients with a stream.
        package var connected: Int64?
        /// For other clients that have contacted the gateway since its start.
        package var away: Int64?
    }

    private struct Found {
        var connected = UInt64.max
        var away = UInt64.max
    }

    /// The ratio of rest to work.
    private static let rest = 30
    /// The minimum work between two pauses.
    private static let worth = Duration.microseconds(100)
    private static let interval = Duration.seconds(2)

    private let engine: Engine
    private let state = Mutex<[String: Oldest]>([:])

    package init(_ engine: Engine) {
        self.engine = engine
    }

    /// The result of the last sweep, by app.
    package var oldest: [String: Oldest] { state.withLock { $0 } }

    /// Sweeps until the gateway stops.
    package func run() async throws {
        try? await cancelWhenGracefulShutdown {
            while true {
                // A failing sweep, for example with a failing disk, must not end the service and
                // with it all others: the results of the last sweep remain.
                try? await self.sweep()
                try await Task.sleep(for: Self.interval)
            }
        }
    }

    private func sweep() async throws {
        let apps = Set(engine.catalogs.ruleSets.map(\.catalog.app))
        var found: [String: Found] = [:]
        let head = engine.store.head
        var begun = ContinuousClock.now
        for part in 0..<Registry.partCount {
            let clients = engine.registry.heardOf(part: part) {
                apps.contains($0.app) && $1 < head
            }
            for (loop, asked) in Dictionary(grouping: clients, by: { loop(of: $0.seen) }) {
                for portion in asked.portions(
                    costing: ShardLoop.itemsAtOnce, each: \.seen.record.itemCost)
                {
                    try await look(at: portion, on: engine.loops.all[loop], &found)
                    try await rest(since: &begun)
                }
            }
            try await rest(since: &begun)
        }
        var oldest: [String: Oldest] = [:]
        for app in apps {
            oldest[app] = Oldest(
                connected: try await time(of: found[app]?.connected ?? .max),
                away: try await time(of: found[app]?.away ?? .max))
        }
        let swept = oldest
        state.withLock { $0 = swept }
    }

    /// The loop that checks a client; what a window last forgot is the same on all loops.
    private func loop(of seen: Registry.Seen) -> Int {
        Int(seen.loops.first ?? 0)
    }

    private func look(
        at clients: ArraySlice<(key: ClientKey, seen: Registry.Seen)>, on loop: ShardLoop,
        _ found: inout [String: Found]
    ) async throws {
        let items = try await loop.unconfirmed(
            clients.map { ($0.key.app, $0.seen.record, $0.seen.hearing.confirmed) })
        engine.changes.accepted.recent.withLock { recent in
            for (client, items) in zip(clients, items) {
                let earliest = items.map { recent.earliest(of: $0) }.min() ?? .max
                let figure: WritableKeyPath<Found, UInt64> =
                    client.seen.loops.isEmpty ? \.away : \.connected
                let known = found[client.key.app, default: Found()][keyPath: figure]
                found[client.key.app, default: Found()][keyPath: figure] = min(known, earliest)
            }
        }
    }

    private func rest(since begun: inout ContinuousClock.Instant) async throws {
        let worked = ContinuousClock.now - begun
        guard worked >= Self.worth else { return }
        try await Task.sleep(for: worked * Self.rest)
        begun = .now
    }

    /// Returns the acceptance time of a log entry, or that of the oldest entry that the log still
    /// has.
    private func time(of sequence: UInt64) async throws -> Int64? {
        guard sequence < .max else { return nil }
        let kept = max(sequence, engine.store.floor + 1)
        return try await engine.store.logRow(kept)?.acceptedAt
    }
}
