import ClusterTestSupport
import GatewayTestSupport

extension Repetition {
    private static let nodesMax = 3
    private static let batchEvents = 100
    /// The streams that show one thing, in the mixed load.
    private static let streamsPerThing = 10
    /// Changes per second of the mixed load.
    private static let mixedRate = 200.0

    /// Measures `cluster`: what a store of several nodes costs beside SQLite, and what more nodes cost
    /// for the same changes and deliveries.
    func cluster() throws -> [Sample] {
        let embedded = try Stage.with(settings) { try writing($0, to: "SQLite") }
        let shared = try withNodes(1) { try writing($0, to: "PostgreSQL") }
        let passed = try withNodes(2, lastFirst: true) {
            try writing($0, to: "PostgreSQL through a replica")
        }
        var samples = embedded.samples + shared.samples + passed.samples
        samples += [
            Sample(.cluster, "p99 of a post, PostgreSQL / SQLite", shared.p99 / embedded.p99),
            Sample(
                .cluster, "p99 of a post, more through a replica", passed.p99 - shared.p99,
                unit: "ms"),
        ]
        var first: (one: Double, mixed: Double) = (0, 0)
        for nodes in 1...Self.nodesMax {
            let figures = try withNodes(nodes) { try delivering($0) }
            let name = nodes == 1 ? "1 node" : "\(nodes) nodes"
            samples += [
                Sample(.cluster, "CPU per delivery, \(name)", figures.one, unit: "us"),
                Sample(.cluster, "CPU per delivery, mixed, \(name)", figures.mixed, unit: "us"),
            ]
            samples += figures.losses
            if nodes == 1 {
                first = (figures.one, figures.mixed)
            } else {
                samples += [
                    Sample(.cluster, "CPU, \(name) / 1 node", figures.one / first.one),
                    Sample(.cluster, "CPU, mixed, \(name) / 1 node", figures.mixed / first.mixed),
                ]
            }
        }
        return samples
    }

    /// Runs `body` with nodes on a PostgreSQL server of their own. If `lastFirst`, the first node,
    /// which leads, is the last one of the stage.
    private func withNodes<Result>(
        _ count: Int, lastFirst: Bool = false, _ body: (Stage) throws -> Result
    ) throws -> Result {
        let servers = try ClusterFixture(nodes: Int32(count), hasServer: true, isOnDisk: true)
        let gateways = try ClusterGateways(servers, app: Stage.app)
        let nodes = try (1...Int32(count)).map {
            try gateways.makeNode(
                $0, program: settings.gateway, admin: GatewayProcess.freeAddress(),
                wrapper: Machine.command([], on: settings.serverCores), startsNow: false)
        }
        defer { for node in nodes { node.kill() } }
        for node in nodes { try node.startMeasured() }
        // Until a node leads, it is 503.
        try gateways.putCatalog(nodes[0])
        return try body(
            try Stage(lastFirst ? nodes.reversed() : nodes, backend: gateways.backend()) {
                try $0.map { try gateways.token($0) }
            })
    }

    /// Measures posts of batches on many connections, and single posts one after the other.
    private func writing(
        _ stage: Stage, to store: String
    ) throws -> (p99: Double, samples: [Sample]) {
        tell("posts to \(store)")
        let batches = max(1, settings.requests / 10)
        var requests = (0..<batches).map { number in
            stage.change((0..<Self.batchEvents).map { "\(number * Self.batchEvents + $0)" })
        }[...]
        let seconds = try stage.requester().run { requests.popFirst() }
        let poster = try stage.requester(connections: 1)
        let singles = try (0..<max(200, settings.requests / 10)).map { number in
            var request: [UInt8]? = stage.change(["\(number)"])
            return try poster.run { request.take() }
        }.sorted()
        let p99 = singles[singles.count * 99 / 100] * 1e3
        return (
            p99,
            [
                Sample(
                    .cluster, "changes in batches of \(Self.batchEvents), \(store)",
                    Double(batches * Self.batchEvents) / seconds, unit: "1/s"),
                Sample(
                    .cluster, "p50 of a post, \(store)", singles[singles.count / 2] * 1e3,
                    unit: "ms"),
                Sample(.cluster, "p99 of a post, \(store)", p99, unit: "ms"),
            ]
        )
    }

    /// Measures the CPU of all nodes for changes that reach every stream, and for changes of many
    /// things that reach a few streams each.
    private func delivering(
        _ stage: Stage
    ) throws -> (one: Double, mixed: Double, losses: [Sample]) {
        let count = stage.gateways.count
        tell("\(settings.streams) streams at \(count == 1 ? "one node" : "\(count) nodes")")
        let things = max(1, settings.streams / Self.streamsPerThing)
        let tokens = try stage.makeClients(settings.streams) { ["0", "thing-\($0 % things)"] }
        let fleet = StreamFleet(stage, tokens: tokens)
        defer { fleet.close() }
        try open(settings.streams, of: fleet)
        let phases = try Phases(stage, fleet, warmUpChanges: settings.warmUpChanges)
        let one = try phases.closed(settings.closedChanges)
        let mixed = try phases.rate(
            Int(Self.mixedRate * settings.rateSeconds), perSecond: Self.mixedRate,
            thing: { "thing-\($0 % things)" }, streams: settings.streams / things)
        return (
            one.serverMicroseconds, mixed.serverMicroseconds,
            losses(.cluster, in: [phases.warmUp, one, mixed], of: fleet)
        )
    }
}
