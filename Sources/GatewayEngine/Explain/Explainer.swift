import GatewayCore
import GatewayPush
import GatewayStorage
import Synchronization
import WidgetModel

/// Changes to be explained, decided by one catalog.
package struct ExplainedChanges: Sendable {
    let app: String
    let ruleSet: RuleSet
    let changes: [Change]
    let decisions: [RuleSet.Decision]
    /// The sequence of the one change that is in the log; `nil` for changes that are not made.
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

/// Finds who holds what changes make stale, and what became of them.
///
/// Costs a look at every registered client of the app, part by part and off the event loops: at the
/// names of its kinds, and where one was hit at its keys by the rules that were. Of a million clients
/// a part has 4,000; deliveries wait for the question of one part at most, and who registers or polls
/// for a copy of it. One at a time, apps in turn, and only while somebody waits for the answer.
package final class Explainer: Sendable {
    let store: SQLiteStore
    let catalogs: AppCatalogs
    let registry: Registry
    let changes: ChangeLog
    let loops: ShardLoops
    /// `nil` where nothing is pushed.
    let push: PushLoop?
    private let clock: GatewayClock
    /// Returns how much is pushed, for what would have been.
    let pushTerms: @Sendable () -> PushDesk.Terms
    let turns = ExplainTurns()
    /// Rules that were replaced, and are asked for again when the log is paged through.
    private let replaced = Mutex<[RuleSet]>([])
    private static let replacedMax = 8

    package init(
        store: SQLiteStore, catalogs: AppCatalogs, registry: Registry, changes: ChangeLog,
        loops: ShardLoops, push: PushLoop?, clock: GatewayClock,
        pushTerms: @escaping @Sendable () -> PushDesk.Terms
    ) {
        self.store = store
        self.catalogs = catalogs
        self.registry = registry
        self.changes = changes
        self.loops = loops
        self.push = push
        self.clock = clock
        self.pushTerms = pushTerms
    }

    /// The present moment by both clocks.
    package var time: MonotonicTime {
        MonotonicTime(wall: clock.wallMilliseconds(), monotonic: clock.now())
    }

    /// Rules that are kept.
    func kept(_ app: String, _ sequence: UInt64) -> RuleSet? {
        replaced.withLock { kept in
            kept.first { $0.sequence == sequence && $0.catalog.app == app }
        }
    }

    /// Keeps rules, in place of those kept longest.
    func keep(_ ruleSet: RuleSet) {
        replaced.withLock { kept in
            if kept.count >= Self.replacedMax { kept.removeFirst() }
            kept.append(ruleSet)
        }
    }

    /// Something of a client that a change makes stale.
    private struct Found: Sendable {
        let client: Int
        let hold: ChangeReach.Hold
        var telling: Telling?
        var push: Outcome?
    }

    /// Who holds what each of the changes makes stale.
    ///
    /// - Parameter isWanted: Whether somebody still waits for the answer.
    /// - Throws: 503 while too many wait; `CancellationError` when it is not wanted.
    package func tallies(
        of subject: ExplainedChanges, while isWanted: () -> Bool
    ) async throws -> [HolderTally] {
        try await turns.begin(app: subject.app)
        defer { turns.end() }
        guard isWanted() else { throw CancellationError() }
        var tallies = subject.decisions.map { _ in HolderTally() }
        let reach = ChangeReach(subject.decisions.map(\.keys), by: subject.ruleSet)
        guard !reach.isEmpty else { return tallies }
        if let sequence = subject.sequence { try await settle(at: sequence) }
        let devices = try await devices(subject, reach, isWanted)
        for part in 0..<Registry.partCount {
            guard isWanted() else { throw CancellationError() }
            var clients = registry.clients(of: subject.app, part: part)
            var found: [Found] = []
            for (index, client) in clients.enumerated() {
                // What came before it registered is of no interest to it.
                if let sequence = subject.sequence, client.record.since >= sequence { continue }
                for hold in reach.holds(of: client.record) {
                    found.append(Found(client: index, hold: hold))
                }
            }
            try await askStreams(&found, clients, subject)
            // A stream that ended meanwhile has left what it told.
            for place in found.indices
            where found[place].telling == nil && !clients[found[place].client].loops.isEmpty {
                let key = ClientKey(
                    app: subject.app, client: clients[found[place].client].record.client)
                if let client = registry.client(key) {
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
        for loop in loops.all { try await loop.reached(sequence) }
        guard let push else { return }
        // What the loops have, it is about to have.
        for _ in 0..<200 {
            if push.position >= sequence { return }
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    /// For changes that are not made: how many pushes each would be spread over.
    private func devices(
        _ subject: ExplainedChanges, _ reach: ChangeReach, _ isWanted: () -> Bool
    ) async throws -> [Int] {
        var devices = subject.decisions.map { _ in 0 }
        guard push != nil, subject.sequence == nil else { return devices }
        for part in 0..<Registry.partCount {
            guard isWanted() else { throw CancellationError() }
            for client in registry.clients(of: subject.app, part: part)
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
        for loop in loops.all {
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
    }

    private func askPushes(
        _ found: inout [Found], of clients: [Registry.Seen], subject: ExplainedChanges,
        devices: [Int]
    ) async throws {
        guard let push else { return }
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
        into tallies: inout [HolderTally]
    ) {
        var counted: [Int: Int] = [:]
        for found in found {
            let client = clients[found.client]
            let change = found.hold.change
            // What is found of one client stands together.
            if counted[change] != found.client {
                counted[change] = found.client
                tallies[change].count(client.record)
            }
            let outcome =
                subject.sequence.map {
                    Outcome(
                        of: $0, for: found.hold.item, of: client.record, client.hearing,
                        stream: found.telling, push: found.push)
                } ?? Outcome(forecast: found.telling, push: found.push)
            tallies[change].count(
                found.hold.item, of: client.record, hasStream: found.telling != nil, outcome)
        }
    }
}
