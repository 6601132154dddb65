extension Repetition {
    private static let changes = 50

    /// Measures `burst`: the saving of joining many changes into few records.
    func burst() throws -> [Sample] {
        try Stage.with(settings) { stage in
            let things = (0..<Self.changes).map(String.init)
            tell("registering \(settings.clients) clients with \(things.count) widgets each")
            let tokens = try stage.makeClients(settings.clients, things: { _ in things })
            let fleet = StreamFleet(stage, tokens: tokens)
            defer { fleet.close() }
            try open(settings.clients, of: fleet)
            let phases = try Phases(stage, fleet, warmUpChanges: settings.warmUpChanges)
            let rounds = settings.isQuick ? 1 : 4
            tell("\(rounds) rounds of \(Self.changes) changes, in three ways")
            let single = try phases.closed(Self.changes * rounds) { things[$0 % things.count] }
            var (batch, pipelined) = (PhaseStats(), PhaseStats())
            for _ in 0..<rounds {
                batch =
                    batch
                    + (try phases.burst(changes: things.count, requests: [stage.change(things)]))
                pipelined =
                    pipelined
                    + (try phases.burst(
                        changes: things.count, requests: things.map { stage.change([$0]) }))
            }
            let streams = Double(settings.clients * rounds)
            return [("one at a time", single), ("one batch", batch), ("pipelined", pipelined)]
                .flatMap { name, figures in
                    let cpu = figures.serverMicroseconds
                    let ratio = Sample(
                        .burst, "\(name) / one at a time", cpu / single.serverMicroseconds)
                    return [
                        Sample(.burst, "server CPU per delivery, \(name)", cpu, unit: "us")
                    ] + (name == "one at a time" ? [] : [ratio]) + [
                        Sample(
                            .burst, "TLS records per stream, \(name)",
                            Double(figures.records) / streams),
                        Sample(
                            .burst, "reads per stream, \(name)", Double(figures.reads) / streams),
                    ]
                } + losses(.burst, in: [single, batch, pipelined], of: fleet)
        }
    }
}
