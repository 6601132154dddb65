@testable import GatewayPostgres

/// A naive model of a primary with one standby, for the write path: what `tg.append` and the other
/// functions do, and what faults do to it.
struct ScriptedServer {
    /// A committed batch.
    struct Row {
        let position: LogPosition
        let call: AppendCall
        let node: Int
        /// Whether the standby has it; others are gone after a promotion.
        var isReplicated: Bool
    }

    let logID: UInt128 = 7
    private(set) var rows: [Row] = []
    /// An append that holds the lock and waits for the standby, unseen.
    private(set) var waiting: Row?
    private(set) var generations: [Int: Int64] = [:]
    var hasQuorum = true
    /// Faults of the server, to see them found: rows are written whatever their revision, and
    /// catalogs and removals whatever they replace.
    var ignoresRevisions = false
    var ignoresCatalogs = false
    private(set) var startedAt: Int64 = 1

    /// The settings, as a query reads them.
    private var durability: Durability {
        Durability(
            standbyNames: hasQuorum ? "standby" : "", isFlushed: true, writesFullPages: true)
    }

    /// The tables after all that is visible.
    private(set) var tables = ScriptedTables()

    private var head: LogPosition { rows.last?.position ?? LogPosition(last: 0, chain: 1) }

    /// Executes a request of a node.
    ///
    /// - Parameter commits: Whether an append is confirmed by the standby at once.
    /// - Returns: `nil` for an append that waits for the standby.
    mutating func execute(
        _ request: WriteRequest, node: Int, commits: Bool
    ) -> Result<WriteAnswer, PostgresError>? {
        switch request {
        case .identify(let last):
            .success(
                .identified(
                    ServerIdentity(
                        version: ClusterSchema.version, logID: logID,
                        chain: last == 0
                            ? 1 : rows.first { $0.position.last == last }?.position.chain,
                        durability: durability, startedAt: startedAt)))
        case .fence: fence(node)
        case .find(let batch, let after):
            .success(
                .found(
                    rows.first {
                        $0.position.last > after && $0.node == node && $0.call.batch == batch
                    }?.position))
        case .probe(let probe): .success(.probed(look(up: probe)))
        case .read(let reading): .success(.read(tables.read(reading, head: head.last)))
        case .deleteRemoved: .success(.deleted(hasMore: false))
        case .append(let call): append(call, node: node, commits: commits)
        case .readDurability: .success(.durability(durability))
        }
    }

    private mutating func fence(_ node: Int) -> Result<WriteAnswer, PostgresError> {
        if waiting?.node == node { return .failure(.lockTimeout) }
        generations[node, default: 0] += 1
        // The commit lies behind all that is visible, and waits as that should have.
        if hasQuorum { replicateAll() }
        return .success(.fenced(generation: generations[node, default: 0]))
    }

    private func look(up probe: Probe) -> ProbeResult {
        var result = ProbeResult(head: head.last)
        result.events = known(probe.events)
        for app in probe.apps { result.apps[app] = tables.apps[app] }
        for key in probe.registrations { result.revisions[key] = tables.live(key)?.revision }
        for token in probe.tokens { result.owners[token] = tables.owners[token] }
        return result
    }

    private func known(_ keys: [UInt128]) -> [UInt128: KnownEvent] {
        var known: [UInt128: KnownEvent] = [:]
        for row in rows {
            let first = row.position.last - row.call.count
            for (key, (digest, place)) in zip(row.call.keys, zip(row.call.digests, row.call.places))
            where keys.contains(key) {
                known[key] = KnownEvent(sequence: first + Int64(place), digest: digest)
            }
        }
        return known
    }

    private mutating func append(
        _ call: AppendCall, node: Int, commits: Bool
    ) -> Result<WriteAnswer, PostgresError>? {
        guard call.generation == generations[node] else { return .failure(.fenced) }
        guard waiting == nil else { return .failure(.lockTimeout) }
        let isRaced = known(call.keys).values.contains { $0.sequence > call.probed }
        guard !isRaced, isCurrent(call) else { return .failure(.raced) }
        let position = LogPosition(
            last: head.last + call.count, chain: (head.chain &* 31 &+ call.link) | 2)
        let row = Row(position: position, call: call, node: node, isReplicated: hasQuorum)
        if hasQuorum, !commits {
            waiting = row
            return nil
        }
        show(row)
        return .success(.appended(position))
    }

    /// Returns whether what a call was decided by is still so.
    private func isCurrent(_ call: AppendCall) -> Bool {
        let areAppsCurrent = call.apps.allSatisfy {
            (tables.apps[$0]?.newest ?? 0) <= call.probed
        }
        let areRowsCurrent = call.registrations.allSatisfy {
            (tables.live($0.key)?.revision ?? 0) == $0.base
        }
        let areOwnersCurrent = call.claims.allSatisfy { tables.owners[$0.token] == $0.owner }
        return (areAppsCurrent || ignoresCatalogs)
            && (areRowsCurrent && areOwnersCurrent || ignoresRevisions)
    }

    private mutating func show(_ row: Row) {
        rows.append(row)
        tables.apply(row.call, last: row.position.last)
    }

    private mutating func replicateAll() {
        for index in rows.indices { rows[index].isReplicated = true }
    }

    // MARK: Faults

    /// The standby confirms, or the setting was emptied: the waiting append becomes visible.
    mutating func releaseWaiting() -> (node: Int, LogPosition)? {
        guard var row = waiting else { return nil }
        waiting = nil
        row.isReplicated = hasQuorum
        show(row)
        return (row.node, row.position)
    }

    /// The primary is killed and started again: what waited is visible, and only there.
    mutating func restart() {
        startedAt += 1
        guard var row = waiting else { return }
        waiting = nil
        row.isReplicated = false
        show(row)
    }

    /// The primary is lost and the standby promoted; it may have what waited.
    mutating func promote(keepsWaiting: Bool) {
        startedAt += 1
        if let lost = rows.firstIndex(where: { !$0.isReplicated }) {
            rows.removeSubrange(lost...)
            tables = ScriptedTables()
            for row in rows { tables.apply(row.call, last: row.position.last) }
            waiting = nil
        }
        if keepsWaiting, let row = waiting { show(row) }
        waiting = nil
        replicateAll()
    }

    /// A standby is there again, and has caught up.
    mutating func restoreQuorum() {
        hasQuorum = true
        replicateAll()
    }
}
