import GatewayTestSupport

extension Repetition {
    /// Streams that every change goes to, and the number of those that are added: the deliveries to
    /// these are measured.
    private static let (streams, moreStreams) = (100, 200)
    private static let changes = 20
    /// Changes decided, and the number that is added: in as many every collapse window ends once.
    private static let (decisions, moreDecisions) = (100_000, 100_000)
    private static let widgets = 10_000

    /// Measures `costs`: instructions and allocations of a delivery and a decision, by valgrind: figures
    /// that repeat, on a machine with other work too.
    func costs() throws -> [Sample] { try deliveryCosts() + decisionCosts() }

    /// Counts all work of a shard's loop for a change, from the log's entry to the sockets.
    private func deliveryCosts() throws -> [Sample] {
        let callgrind = try Callgrind(
            within: "*ShardLoopC12takeMessages*", countsAtStart: false)
        defer { callgrind.end() }
        var settings = settings
        settings.gateway = try callgrind.copy(settings.gateway)
        tell("starting the gateway under valgrind")
        return try Stage.with(settings, launcher: callgrind.launcher) { stage in
            let tokens = try stage.makeClients(Self.streams + Self.moreStreams)
            let fleet = StreamFleet(stage, tokens: tokens)
            defer { fleet.close() }
            func count(adding streams: Int) throws -> (CallgrindProfile, PhaseStats) {
                try fleet.open(streams)
                tell("\(Self.changes) changes to \(fleet.streams.count) streams")
                let phases = try Phases(stage, fleet, warmUpChanges: settings.warmUpChanges)
                var figures = PhaseStats()
                let profile = try callgrind.count(of: stage.gateway.pid) {
                    figures = try phases.closed(Self.changes)
                }
                return (profile, figures)
            }
            let (fewer, few) = try count(adding: Self.streams)
            let (more, many) = try count(adding: Self.moreStreams)
            let costs = try UnitCosts(
                fewer, more, units: many.count.delivered - few.count.delivered)
            guard costs.sends > 0.9 else {
                throw BenchFailure("deliveries are not sent by the function that callgrind counts")
            }
            return costs.deliverySamples + losses(.costs, in: [few, many], of: fleet)
        }
    }

    /// Counts all work of the core for a change, from the decision to what is to be sent.
    private func decisionCosts() throws -> [Sample] {
        let callgrind = try Callgrind(within: "*DecideGatewayV9decideAll*", countsAtStart: true)
        defer { callgrind.end() }
        let program = try callgrind.copy(Machine.ownProgram)
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
        return try UnitCosts(
            count(Self.decisions), count(Self.decisions + Self.moreDecisions),
            units: Self.moreDecisions
        ).decisionSamples
    }
}

extension UnitCosts {
    var deliverySamples: [Sample] {
        [
            Sample(.costs, "instructions per delivery", instructions),
            Sample(.costs, "own instructions per delivery", ownInstructions),
            Sample(.costs, "allocations per delivery", allocations),
            Sample(.costs, "own allocations per delivery", ownAllocations),
        ]
    }

    /// The figures of a decision, which is our own work alone.
    var decisionSamples: [Sample] {
        [
            Sample(.costs, "instructions per decision", instructions),
            Sample(.costs, "allocations per decision", allocations),
        ]
    }
}
