import CatalogModel
import GatewayCore
import WidgetModel

/// The core with the smallest writer in front of it: a log in memory and one shard.
struct DecideGateway {
    /// Changes that pass while a millisecond does: half a million in a second.
    private static let changesPerMillisecond: UInt64 = 500

    /// Deliveries so far.
    var deliveries = 0

    private var decider: Decider
    private var shard = Shard(floor: 0)
    private var streams: [StreamID] = []
    private var head: UInt64 = 1

    /// A gateway on which the catalog is in force.
    init(_ catalog: Catalog) {
        decider = Decider(hash: SipHash(1, 2), limits: .none)
        let ruleSet = decider.install(catalog, at: 1)
        shard.apply(
            LogEntry(
                sequence: 1, app: catalog.app, acceptedAt: 0, body: .catalog(ruleSet)), now: 0)
    }

    /// Opens a stream for a client that is up to date.
    mutating func open(_ client: ClientRecord, kinds: Set<String>?) {
        let stream = shard.open(
            client, app: DecideWorkload.app, since: .after(head), kinds: kinds)
        guard let stream else { fatalError("the app of the benchmark has no catalog") }
        streams.append(stream)
    }

    /// A client's connection breaks and comes back. Not inlined, so that a profiler can count it.
    @inline(never)
    mutating func reopen(_ index: Int, _ client: ClientRecord) {
        shard.close(streams[index])
        let stream = shard.open(
            client, app: DecideWorkload.app, since: .after(head), kinds: nil)
        guard let stream else { fatalError("the app of the benchmark has no catalog") }
        streams[index] = stream
    }

    /// Decides changes one by one. Not inlined, so that a profiler can count it.
    @inline(never)
    mutating func decideAll(_ changes: [Change]) {
        for change in changes { decide(change) }
    }

    /// Decides a change, applies it, and counts what is to be sent.
    mutating func decide(_ change: Change) {
        head += 1
        let now = Int64(truncatingIfNeeded: head / Self.changesPerMillisecond)
        guard let decision = try? decider.decide(change, app: DecideWorkload.app) else {
            fatalError("the changes of the benchmark have few keys")
        }
        shard.apply(
            LogEntry(
                sequence: head, app: DecideWorkload.app, acceptedAt: 0,
                body: .change(decision, cause: nil)), now: now)
        if let end = shard.nextWindowEnd, end <= now { shard.endWindows(now: now) }
        deliveries += shard.output.deliveries.count
        shard.clearOutput()
    }
}
