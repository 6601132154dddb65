/// `fanout` and `latency`: many streams that depend on one key, in a closed loop and at a rate.
struct FanOut {
    let settings: BenchSettings
    /// Of the two, those that are asked for.
    let scenarios: [ScenarioName]

    /// One repetition on the gateway and, when asked for, on the peer.
    func measure(into report: inout Report, _ tell: (String) -> Void) throws {
        try Stage.with(settings) { stage in
            tell("registering \(settings.streams) clients")
            let tokens = try stage.makeClients(settings.streams, things: ["0"])
            let target = stage.target(tokens: tokens, thing: "0", isHTTP2: settings.isHTTP2)
            let (samples, bytes) = try run(stage.generator, target, tell)
            report.add(samples)
            guard settings.hasPeer else { return }
            try stage.gateway.stop()
            let peer = try NchanPeer(of: stage.gateway, cores: settings.serverCores)
            defer { peer.end() }
            tell("nchan")
            let theirTarget = peer.target(isHTTP2: settings.isHTTP2)
            let (theirs, _) = try run(stage.generator, theirTarget, tell, sizing: (peer, bytes))
            report.add(theirs, isPeer: true)
        }
    }

    /// - Parameter sizing: A peer, and the bytes of stream that one of its events is to have.
    /// - Returns: The figures, and the bytes of stream of one event.
    private func run(
        _ generator: Generator, _ target: Target, _ tell: (String) -> Void,
        sizing: (peer: NchanPeer, bytes: Double)? = nil
    ) throws -> ([Sample], Double) {
        let fleet = StreamFleet(generator, target)
        defer { fleet.close() }
        let before = (
            cpu: ProcessFigures.cpuNanoseconds(target.processes),
            memory: ProcessFigures.residentBytes(target.processes)
        )
        try fleet.open(settings.streams) { tell("\($0) streams are open") }
        // Made now: the server closes a connection that asks nothing for long.
        let poster = try Requester(generator, port: target.port, connections: 1)
        defer { poster.close() }
        let cpu = ProcessFigures.cpuNanoseconds(target.processes) - before.cpu
        let phases = Phases(generator: generator, fleet: fleet, poster: poster, target: target)
        let streams = Double(settings.streams)
        let memory = ProcessFigures.residentBytes(target.processes) - before.memory
        let warm = try phases.closed(settings.warmUpChanges)
        if let sizing { sizing.peer.grow(by: sizing.bytes - warm.bytesPerDelivery) }
        var (samples, lost, stray): ([Sample], Int, Int) = (
            [], warm.count.outstanding, warm.count.stray
        )
        if scenarios.contains(.fanout) {
            tell("closed loop, \(settings.closedChanges) changes")
            let figures = try phases.closed(settings.closedChanges)
            samples += [
                Sample(.fanout, "server CPU per delivery", figures.serverMicroseconds, "us"),
                Sample(.fanout, "deliveries", figures.perSecond, "1/s"),
                Sample(.fanout, "p50", figures.milliseconds(0.5), "ms"),
                Sample(.fanout, "p99", figures.milliseconds(0.99), "ms"),
                Sample(.fanout, "memory per idle stream", Double(memory) / streams / 1024, "KiB"),
                Sample(.fanout, "server CPU per connection", Double(cpu) / streams / 1e6, "ms"),
                Sample(.fanout, "stream bytes per delivery", figures.bytesPerDelivery, "B"),
                Sample(.fanout, "generator CPU per delivery", figures.ownMicroseconds, "us"),
            ]
            lost += figures.count.outstanding
            stray += figures.count.stray
            samples += losses(.fanout, lost, stray, fleet)
        }
        if scenarios.contains(.latency) {
            let perSecond = settings.changesPerSecond(streams: settings.streams)
            tell("\(Figure.text(settings.rate)) deliveries a second")
            let figures = try phases.rate(
                max(1, Int(perSecond * settings.rateSeconds)), perSecond: perSecond)
            samples += [
                Sample(.latency, "p50 from the schedule", figures.milliseconds(0.5), "ms"),
                Sample(.latency, "p99 from the schedule", figures.milliseconds(0.99), "ms"),
                Sample(.latency, "server CPU per delivery", figures.serverMicroseconds, "us"),
            ]
            samples += losses(.latency, figures.count.outstanding, figures.count.stray, fleet)
        }
        return (samples, warm.bytesPerDelivery)
    }

    private func losses(
        _ scenario: ScenarioName, _ lost: Int, _ stray: Int, _ fleet: StreamFleet
    ) -> [Sample] {
        [
            .loss(scenario, "lost", lost), .loss(scenario, "stray", stray),
            .loss(scenario, "streams broken", fleet.failed),
        ]
    }
}
