import CatalogModel
import GatewayCore
import Synchronization
import WidgetModel

/// Changes to explain, decided by one catalog.
package struct ExplainedChanges: Sendable {
    let app: String
    let ruleSet: RuleSet
    let changes: [Change]
    let decisions: [RuleSet.Decision]
    /// The sequence of the single logged change; `nil` for hypothetical changes.
    let sequence: UInt64?

    package init(
        app: String, ruleSet: RuleSet, changes: [Change], decisions: [RuleSet.Decision],
        sequence: UInt64?
    ) {
        self.app = app
        self.ruleSet = ruleSet
        self.changes = changes
        self.decisions = decisions
        self.sequence = sequence
    }
}

/// Finds the clients whose items changes make stale, and the outcome for each.
///
/// Visits every registered client of the app, part by part (4,000 of a million clients) and off the
/// event loops. It compares the names of kinds and, for affected kinds, the keys of the rules that
/// match. A delivery waits at most for the question about one part, a registration or poll for a
/// copy of it. One explanation runs at a time, apps in turn, and only while its caller waits.
package final class Explainer: Sendable {
    let engine: Engine
    /// The push limits, for forecasts.
    let pushTerms: @Sendable () -> PushScheduler.Terms
    let turns = ExplainTurns()
    /// Replaced rules, which are needed again while the log is paged through.
    private let replaced = Mutex<[RuleSet]>([])
    private static let replacedMax = 8

    package init(_ engine: Engine, pushTerms: @escaping @Sendable () -> PushScheduler.Terms) {
        self.engine = engine
        self.pushTerms = pushTerms
    }

    /// The present moment on both clocks.
    package var time: MonotonicTime {
        MonotonicTime(wall: engine.clock.wallMilliseconds(), monotonic: engine.clock.now())
    }

    /// Returns cached rules.
    func kept(_ app: String, _ sequence: UInt64) -> RuleSet? {
        replaced.withLock { kept in
            kept.first { $0.sequence == sequence && $0.catalog.app == app }
        }
    }

    /// Caches rules, in place of the oldest ones.
    func keep(_ ruleSet: RuleSet) {
        replaced.withLock { kept in
            if kept.count >= Self.replacedMax { kept.removeFirst() }
            kept.append(ruleSet)
        }
    }

    /// An item of a client that a change makes stale.
    private struct Found: Sendable {
        let client: Int
        let hold: ChangeReach.Hold
        var telling: StreamDeliveryState?
        var push: Outcome?
    }

    /// Tallies the clients whose items each of the changes makes stale.
    ///
    /// - Parameter isWanted: Whether the caller still waits for the answer.
    /// - Throws: ``EngineError/busy(_:)`` if too many wait; `CancellationError` if the answer is no
    ///   longer wanted.
    package func tallies(
        of subject: ExplainedChanges, while isWanted: () -> Bool
    ) async throws -> [ImpactSummary] {
        try await turns.begin(app: subject.app)
        defer { turns.end() }
        guard isWanted() else { throw CancellationError() }
        var tallies = subject.decisions.map { _ in ImpactSummary() }
        let reach = ChangeReach(subject.decisions.map(\.keys), by: subject.ruleSet)
        guard !reach.isEmpty else { return tallies }
        if let sequence = subject.sequence { try await settle(at: sequence) }
        let devices = try await devices(subject, reach, isWanted)
        for part in 0..<Registry.partCount {
            guard isWanted() else { throw CancellationError() }
            var clients = engine.registry.clients(of: subject.app, part: part)
            var found: [Found] = []
            for (index, client) in clients.enumerated() {
                // Changes before a client's registration do not concern it.
                if let sequence = subject.sequence, client.record.since >= sequence { continue }
                for hold in reach.holds(of: client.record) {
                    found.append(Found(client: index, hold: hold))
                }
            }
            try await askStreams(&found, clients, subject)
            // A stream that ended in the meantime has left its delivery progress.
            for place in found.indices
            where found[place].telling == nil && clients[found[place].client].streams > 0 {
                let key = ClientKey(
                    app: subject.app, client: clients[found[place].client].record.client)
                if let client = engine.registry.client(key) {
                    clients[found[place].client] = client
                }
            }
            try await askPushes(&found, of: clients, subject: subject, devices: devices)
            count(found, of: clients, subject: subject, into: &tallies)
            await Task.yield()
        }
        return tallies
    }

    /// Waits until every loop has applied the log up to `sequence`.
    func settle(at sequence: UInt64) async throws {
        for loop in engine.loops.all { try await loop.reached(sequence) }
        guard let push = engine.push else { return }
        // The push loop is about to receive the entries that the loops have.
        for _ in 0..<200 {
            if let position = push.position, position >= sequence { return }
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    /// For hypothetical changes: the number of pushes over which each would be spread.
    private func devices(
        _ subject: ExplainedChanges, _ reach: ChangeReach, _ isWanted: () -> Bool
    ) async throws -> [Int] {
        var devices = subject.decisions.map { _ in 0 }
        guard engine.push != nil, subject.sequence == nil else { return devices }
        for part in 0..<Registry.partCount {
            guard isWanted() else { throw CancellationError() }
            for client in engine.registry.clients(of: subject.app, part: part)
            where client.record.isPushable {
                let registration = client.record.registration
                var sorts: Set<DeviceSort> = []
                for hold in reach.holds(of: client.record)
                where hold.item.pushChannel(in: registration) != nil {
                    sorts.insert(
                        DeviceSort(change: hold.change, sort: hold.item.sort(in: registration)))
                }
                for sort in sorts { devices[sort.change] += 1 }
            }
            await Task.yield()
        }
        return devices
    }

    private struct DeviceSort: Hashable {
        let change: Int
        let sort: PushCategory
    }

    private func askStreams(
        _ found: inout [Found], _ clients: [Registry.Seen], _ subject: ExplainedChanges
    ) async throws {
        for loop in engine.loops.all {
            let places = found.indices.filter { place in
                clients[found[place].client].loops.contains(loop.index)
            }
            guard !places.isEmpty else { continue }
            let questions = places.map { place in
                ShardLoop.Question(
                    client: clients[found[place].client].record.client,
                    kind: found[place].hold.item.kind, change: found[place].hold.change,
                    keys: found[place].hold.keys)
            }
            let answers = try await loop.tellings(questions, of: subject)
            for (place, answer) in zip(places, answers) {
                found[place].telling =
                    answer.map { $0.sooner(found[place].telling) }
                    ?? found[place].telling
            }
        }
        guard let leader = engine.leader else { return }
        for node in Set(found.flatMap { clients[$0.client].nodes }) {
            let places = found.indices.filter { clients[found[$0].client].nodes.contains(node) }
            let keys = places.map { place in
                ClientKey(
                    app: subject.app, client: clients[found[place].client].record.client)
            }
            for (place, streams) in zip(places, await leader.streams(of: keys, at: node)) {
                let kind = found[place].hold.item.kind
                for stream in streams {
                    // A change that is not logged would be sent at once.
                    let answer = stream.telling(of: kind, at: subject.sequence ?? 0)
                    found[place].telling =
                        answer.map { $0.sooner(found[place].telling) } ?? found[place].telling
                }
            }
        }
    }

    private func askPushes(
        _ found: inout [Found], of clients: [Registry.Seen], subject: ExplainedChanges,
        devices: [Int]
    ) async throws {
        guard let push = engine.push else { return }
        let places = found.indices.filter { clients[found[$0].client].record.isPushable }
        guard !places.isEmpty else { return }
        let questions = places.map { place in
            PushLoop.Question(
                record: clients[found[place].client].record, item: found[place].hold.item,
                change: found[place].hold.change, devices: devices[found[place].hold.change])
        }
        for (place, answer) in zip(places, try await push.standings(questions, of: subject)) {
            found[place].push = answer
        }
    }

    private func count(
        _ found: [Found], of clients: [Registry.Seen], subject: ExplainedChanges,
        into tallies: inout [ImpactSummary]
    ) {
        var counted: [Int: Int] = [:]
        for found in found {
            let client = clients[found.client]
            let change = found.hold.change
            // The items found for one client are adjacent.
            if counted[change] != found.client {
                counted[change] = found.client
                tallies[change].count(client.record)
            }
            let isPushed =
                found.push != nil && found.hold.item.isPushed(in: client.record.registration)
            let outcome =
                (isPushed ? found.push : nil)
                ?? subject.sequence.map {
                    Outcome(
                        of: $0, for: found.hold.item, of: client.record, client.hearing,
                        stream: found.telling, push: found.push)
                } ?? Outcome(forecast: found.telling, push: found.push)
            tallies[change].count(
                found.hold.item, of: client.record,
                hasStream: found.telling != nil && !isPushed, outcome)
        }
    }
}
