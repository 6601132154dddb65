/// `costs`: what a delivery and a decision cost in instructions and allocations, by valgrind: figures
/// that repeat, on a machine with other work too.
struct Costs {
    /// Streams that every change goes to, and how many come to them: the deliveries to those are
    /// what is measured.
    private static let (streams, moreStreams) = (100, 200)
    private static let changes = 20
    /// Changes decided, and how many more then: in as many every collapse window ends once.
    private static let (decisions, moreDecisions) = (100_000, 100_000)
    private static let widgets = 10_000

    let settings: BenchSettings

    /// One repetition.
    func measure(_ tell: (String) -> Void) throws -> [Sample] {
        try measureDeliveries(tell) + measureDecisions(tell)
    }

    /// All that the loop of a shard does for a change, from the log's entry to the sockets.
    private func measureDeliveries(_ tell: (String) -> Void) throws -> [Sample] {
        let callgrind = try Callgrind(
            within: "*ShardLoopC12takeMessages*", countsAtStart: false)
        defer { callgrind.end() }
        var settings = settings
        settings.gateway = try callgrind.copy(settings.gateway)
        tell("starting the gateway under valgrind")
        return try Stage.with(settings, launcher: callgrind.launcher) { stage in
            let tokens = try stage.makeClients(Self.streams + Self.moreStreams, things: ["0"])
            let target = stage.target(tokens: tokens, thing: "0")
            let fleet = StreamFleet(stage.generator, target)
            defer { fleet.close() }
            func count(adding streams: Int) throws -> (CallgrindProfile, DeliveryCount) {
                try fleet.open(streams)
                tell("\(Self.changes) changes to \(fleet.streams.count) streams")
                // Made now: the server closes a connection that asks nothing for long.
                let poster = try stage.requester(connections: 1)
                defer { poster.close() }
                let phases = Phases(
                    generator: stage.generator, fleet: fleet, poster: poster, target: target)
                _ = try phases.closed(settings.warmUpChanges)
                var count = DeliveryCount()
                let profile = try callgrind.count(of: target.processes[0]) {
                    count = try phases.closed(Self.changes).count
                }
                return (profile, count)
            }
            let (fewer, few) = try count(adding: Self.streams)
            let (more, many) = try count(adding: Self.moreStreams)
            let costs = try UnitCosts(fewer, more, units: many.delivered - few.delivered)
            guard costs.sends > 0.9 else {
                throw BenchFailure("deliveries are not sent from where callgrind counts")
            }
            return Self.deliverySamples(costs) + [
                .loss(.costs, "lost", few.outstanding + many.outstanding),
                .loss(.costs, "stray", few.stray + many.stray),
                .loss(.costs, "streams broken", fleet.failed),
            ]
        }
    }

    /// All that the core does for a change, from the decision to what is to be sent.
    private func measureDecisions(_ tell: (String) -> Void) throws -> [Sample] {
        let callgrind = try Callgrind(within: "*DecideGatewayV9decideAll*", countsAtStart: true)
        defer { callgrind.end() }
        let program = try callgrind.copy("/proc/self/exe")
        func count(_ decisions: Int) throws -> CallgrindProfile {
            tell("\(decisions) decisions under valgrind")
            return try callgrind.count(
                program,
                [
                    "decide", "--in-process", "--json", "--repetitions", "1",
                    "--widgets", "\(Self.widgets)", "--counted-changes", "\(decisions)",
                    "--gateway", settings.gateway,
                ], cores: settings.serverCores)
        }
        let costs = try UnitCosts(
            count(Self.decisions), count(Self.decisions + Self.moreDecisions),
            units: Self.moreDecisions)
        return Self.decisionSamples(costs)
    }

    /// The figures of a delivery.
    static func deliverySamples(_ costs: UnitCosts) -> [Sample] {
        [
            Sample(.costs, "instructions per delivery", costs.instructions, ""),
            Sample(.costs, "own instructions per delivery", costs.ownInstructions, ""),
            Sample(.costs, "allocations per delivery", costs.allocations, ""),
            Sample(.costs, "own allocations per delivery", costs.ownAllocations, ""),
        ]
    }

    /// The figures of a decision, all of which is our own work.
    static func decisionSamples(_ costs: UnitCosts) -> [Sample] {
        [
            Sample(.costs, "instructions per decision", costs.instructions, ""),
            Sample(.costs, "allocations per decision", costs.allocations, ""),
        ]
    }
}
