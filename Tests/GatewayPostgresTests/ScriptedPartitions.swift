@testable import GatewayPostgres

/// A naive model of the functions of `partitions.sql`, with a clock that can be set.
struct ScriptedPartitions {
    struct Seen {
        var process: Int64
        var session: Int
        var beat: Int64 = 0
        var until: Int64?
        var serves = false
    }

    struct Owner {
        var node: Int32?
        var generation: Int64 = 0
        var clear: Int64 = 0
    }

    private(set) var seen: [Int32: Seen] = [:]
    private(set) var owners: [Int32: Owner]
    private(set) var states: [PartitionedClient: PushStateRow] = [:]
    private(set) var startedAt: Int64 = 1
    /// The chain of the position that every node knows.
    var chain: UInt128 = 1
    /// The difference of the server's clock to the true time.
    var offset: Int64 = 0
    /// The processes whose flushes were accepted, by partition and generation.
    private(set) var writers: [Partition: Set<Int64>] = [:]
    /// The state at the time of an earlier commit, which a crash of the server returns to.
    private var durable: (states: [PartitionedClient: PushStateRow], owners: [Int32: Owner])
    var faults: [String] = []

    init(numbers: [Int32]) {
        owners = Dictionary(uniqueKeysWithValues: numbers.map { ($0, Owner()) })
        durable = ([:], owners)
    }

    /// Executes a request of a node's connection.
    mutating func execute(
        _ request: PartitionRequest, node: Int32, session: Int, at trueNow: Int64
    ) -> Result<PartitionAnswer, PostgresError> {
        let now = trueNow + offset
        switch request {
        case .identify:
            return .success(
                .identified(
                    ServerIdentity(
                        version: ClusterSchema.version, logID: 7, chain: chain,
                        durability: Self.settings, startedAt: startedAt)))
        case .readDurability: return .success(.durability(Self.settings))
        case .attach(let process, let isForced):
            return attach(process, isForced, node: node, session: session, at: now)
        default: break
        }
        guard seen[node]?.session == session else { return .failure(.fenced) }
        switch request {
        case .renew(let serves, _):
            seen[node]?.beat += 1
            seen[node]?.until = now + 10_000
            seen[node]?.serves = serves
            commit()
            return .success(.renewed(renewal(node, at: now)))
        case .take(let numbers, let silent):
            return .success(.taken(take(numbers, silent, node: node, at: now)))
        case .release(let partitions):
            for partition in partitions
            where owners[partition.number]?.node == node
                && owners[partition.number]?.generation == partition.generation
            { owners[partition.number]?.node = nil }
            commit()
            return .success(.done)
        case .flush(let call): return .success(.flushed(lost: flush(call, node: node)))
        case .hear, .forgetHeard: return .success(.done)
        case .loadRegistrations(let partition, _):
            return .success(
                .loaded(
                    PartitionPortion(partition: partition, asOf: 0, rows: .registrations([])),
                    isLast: true))
        case .loadStates(let partition, let name):
            return .success(load(partition, after: name))
        case .lookUp: return .success(.lookedUp([:]))
        case .identify, .readDurability, .attach: return .failure(.unexpectedAnswer)
        }
    }

    private static let settings = Durability(
        standbyNames: "s", isFlushed: true, writesFullPages: true)

    private mutating func attach(
        _ process: Int64, _ isForced: Bool, node: Int32, session: Int, at now: Int64
    ) -> Result<PartitionAnswer, PostgresError> {
        var row = seen[node] ?? Seen(process: process, session: session)
        if row.process != process {
            if !isForced, isRunning(row, at: now) { return .failure(.fenced) }
            for number in owners.keys where owners[number]?.node == node {
                owners[number]?.node = nil
            }
        }
        (row.process, row.session) = (process, session)
        seen[node] = row
        commit()
        return .success(.done)
    }

    private func isRunning(_ row: Seen?, at now: Int64) -> Bool {
        guard let until = row?.until else { return false }
        return (now...now + 30_000).contains(until)
    }

    private func renewal(_ node: Int32, at now: Int64) -> LeaseRenewal {
        LeaseRenewal(
            node: node,
            owned: owners.filter { $0.value.node == node }
                .map { Partition(number: $0.key, generation: $0.value.generation) }
                .sorted { $0.number < $1.number },
            beats: seen.mapValues(\.beat),
            serving: seen.filter { $0.value.serves && isRunning($0.value, at: now) }.map(\.key)
                .sorted())
    }

    private mutating func take(
        _ numbers: [Int32], _ silent: [SilentNode], node: Int32, at now: Int64
    ) -> [Partition] {
        let dead = silent.filter {
            $0.node != node && seen[$0.node]?.beat == $0.beat
                && !isRunning(seen[$0.node], at: now)
        }.map(\.node)
        var taken: [Partition] = []
        for number in numbers.sorted() {
            guard var owner = owners[number] else { continue }
            if let old = owner.node, !dead.contains(old) { continue }
            owner.node = node
            owner.generation += 1
            owners[number] = owner
            taken.append(Partition(number: number, generation: owner.generation))
        }
        if !taken.isEmpty { commit() }
        return taken
    }

    private mutating func flush(_ call: FlushCall, node: Int32) -> [Int32] {
        var lost: [Int32] = []
        for owned in call.owned {
            let number = owned.partition.number
            guard owners[number]?.node == node,
                owners[number]?.generation == owned.partition.generation
            else {
                lost.append(number)
                continue
            }
            writers[owned.partition, default: []].insert(seen[node]?.process ?? 0)
            if let clear = owned.clear {
                let before = owners[number]?.clear ?? 0
                owners[number]?.clear = max(clear, before)
            }
        }
        for row in call.rows where !lost.contains(row.part) {
            if !call.owned.contains(where: { $0.partition.number == row.part }) {
                faults.append("a row of a partition that the flush does not name")
            }
            let client = PartitionedClient(part: row.part, name: row.state.name)
            if let before = states[client], before.told > row.state.told { continue }
            states[client] = row.state
        }
        return lost
    }

    private func load(_ partition: Partition, after name: ClientName?) -> PartitionAnswer {
        // Two rows a portion.
        let rows =
            states.filter {
                $0.key.part == partition.number && $0.key.name.client > name?.client ?? ""
            }
            .map(\.value).sorted { $0.name.client < $1.name.client }
        return .loaded(
            PartitionPortion(
                partition: partition, asOf: 0,
                rows: .states(
                    Array(rows.prefix(2)), clear: owners[partition.number]?.clear ?? 0)),
            isLast: rows.count <= 2)
    }

    /// All that was written so far is durable.
    private mutating func commit() { durable = (states, owners) }

    /// The server is killed and started again: flushes behind the last commit are lost.
    mutating func crash() {
        startedAt += 1
        (states, owners) = durable
    }
}
