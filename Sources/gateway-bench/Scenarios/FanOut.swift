import GatewayTestSupport

extension Repetition {
    /// Measures `fanout`, `latency` or both: many streams that depend on one key, in a closed loop
    /// and at a rate.
    func fanOut(_ scenarios: [ScenarioName]) throws -> [Sample] {
        try Stage.with(settings) { stage in
            tell("registering \(settings.streams) clients")
            let tokens = try stage.makeClients(settings.streams)
            let fleet = StreamFleet(stage, tokens: tokens)
            defer { fleet.close() }
            let pid = stage.gateway.pid
            let before = (
                cpu: ProcessStats.cpuNanoseconds(pid), memory: ProcessStats.residentBytes(pid)
            )
            try open(settings.streams, of: fleet)
            let streams = Double(settings.streams)
            let cpu = Double(ProcessStats.cpuNanoseconds(pid) - before.cpu) / streams
            let memory = Double(ProcessStats.residentBytes(pid) - before.memory) / streams
            let phases = try Phases(stage, fleet, warmUpChanges: settings.warmUpChanges)
            var samples: [Sample] = []
            if scenarios.contains(.fanout) {
                tell("closed loop, \(settings.closedChanges) changes")
                let figures = try phases.closed(settings.closedChanges)
                samples += [
                    Sample(
                        .fanout, "server CPU per delivery", figures.serverMicroseconds, unit: "us"),
                    Sample(.fanout, "deliveries", figures.perSecond, unit: "1/s"),
                    Sample(.fanout, "p50", figures.milliseconds(0.5), unit: "ms"),
                    Sample(.fanout, "p99", figures.milliseconds(0.99), unit: "ms"),
                    Sample(.fanout, "memory per idle stream", memory / 1024, unit: "KiB"),
                    Sample(.fanout, "server CPU per connection", cpu / 1e6, unit: "ms"),
                    Sample(
                        .fanout, "stream bytes per delivery", figures.bytesPerDelivery, unit: "B"),
                    Sample(
                        .fanout, "generator CPU per delivery", figures.ownMicroseconds, unit: "us"),
                ]
                samples += losses(.fanout, in: [phases.warmUp, figures], of: fleet)
            }
            if scenarios.contains(.latency) {
                let perSecond = settings.changesPerSecond(streams: settings.streams)
                tell("\(Figure.text(settings.rate)) deliveries a second")
                let figures = try phases.rate(
                    max(1, Int(perSecond * settings.rateSeconds)), perSecond: perSecond)
                samples += [
                    Sample(
                        .latency, "p50 from the schedule", figures.milliseconds(0.5), unit: "ms"),
                    Sample(
                        .latency, "p99 from the schedule", figures.milliseconds(0.99), unit: "ms"),
                    Sample(
                        .latency, "server CPU per delivery", figures.serverMicroseconds, unit: "us"),
                ]
                samples += losses(.latency, in: [figures], of: fleet)
            }
            return samples
        }
    }
}
