/// `burst`: what joining many changes into few records saves.
struct Burst {
    private static let changes = 50

    let settings: BenchSettings

    /// One repetition.
    func measure(_ tell: (String) -> Void) throws -> [Sample] {
        try Stage.with(settings) { stage in
            let things = (0..<Self.changes).map(String.init)
            tell("registering \(settings.clients) clients with \(things.count) widgets each")
            let tokens = try stage.makeClients(settings.clients, things: things)
            let target = stage.target(tokens: tokens, thing: "0")
            let fleet = StreamFleet(stage.generator, target)
            defer { fleet.close() }
            try fleet.open(settings.clients) { tell("\($0) streams are open") }
            // Made now: the server closes a connection that asks nothing for long.
            let poster = try stage.requester(connections: 1)
            defer { poster.close() }
            let phases = Phases(
                generator: stage.generator, fleet: fleet, poster: poster, target: target)
            _ = try phases.closed(settings.warmUpChanges)
            let rounds = settings.isQuick ? 1 : 4
            tell("\(rounds) rounds of \(Self.changes) changes, in three ways")
            var place = 0
            var oneByOne = target
            oneByOne.changeRequest = {
                defer { place += 1 }
                return stage.change([things[place % things.count]])
            }
            let single = try Phases(
                generator: stage.generator, fleet: fleet, poster: poster, target: oneByOne
            ).closed(Self.changes * rounds)
            var (batch, pipelined): ([PhaseFigures], [PhaseFigures]) = ([], [])
            for _ in 0..<rounds {
                batch.append(
                    try phases.burst(changes: things.count, requests: [stage.change(things)]))
                pipelined.append(
                    try phases.burst(
                        changes: things.count, requests: things.map { stage.change([$0]) }))
            }
            return samples(
                [("one at a time", [single]), ("one batch", batch), ("pipelined", pipelined)],
                rounds, fleet)
        }
    }

    private func samples(
        _ ways: [(name: String, figures: [PhaseFigures])], _ rounds: Int, _ fleet: StreamFleet
    ) -> [Sample] {
        var samples: [Sample] = []
        var (first, lost, stray) = (0.0, 0, 0)
        for (name, figures) in ways {
            let delivered = figures.reduce(0) { $0 + $1.count.delivered }
            let cpu = figures.reduce(0) { $0 + $1.serverCPU }
            let each = Double(cpu) / 1e3 / Double(max(1, delivered))
            let streams = Double(settings.clients * rounds)
            let (records, reads) = figures.reduce((0, 0)) { ($0.0 + $1.records, $0.1 + $1.reads) }
            samples.append(Sample(.burst, "server CPU per delivery, \(name)", each, "us"))
            if first == 0 {
                first = each
            } else {
                samples.append(Sample(.burst, "\(name) / one at a time", each / first, ""))
            }
            samples += [
                Sample(.burst, "TLS records per stream, \(name)", Double(records) / streams, ""),
                Sample(.burst, "reads per stream, \(name)", Double(reads) / streams, ""),
            ]
            lost += figures.reduce(0) { $0 + $1.count.outstanding }
            stray += figures.reduce(0) { $0 + $1.count.stray }
        }
        return samples + [
            .loss(.burst, "lost", lost), .loss(.burst, "stray", stray),
            .loss(.burst, "streams broken", fleet.failed),
        ]
    }
}
