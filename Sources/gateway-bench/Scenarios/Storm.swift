/// `storm`: everybody comes back at once after a restart, from where they were.
struct Storm {
    private static let changes = 5
    private static let atOnce = 64

    let settings: BenchSettings

    /// One repetition.
    func measure(_ tell: (String) -> Void) throws -> [Sample] {
        try Stage.with(settings) { stage in
            tell("registering \(settings.streams) clients")
            let tokens = try stage.makeClients(settings.streams, things: ["0"])
            let cursors = try missSomething(stage, tokens, tell)
            tell("restarting")
            try restart(stage)
            // Now, for a restart makes it another process.
            let target = stage.target(tokens: tokens, thing: "0", cursors: cursors)
            let start = monotonicNanoseconds()
            let before = ProcessFigures.cpuNanoseconds(target.processes)
            let fleet = StreamFleet(stage.generator, target)
            defer { fleet.close() }
            try fleet.open(settings.streams) { tell("\($0) streams have their catch-up") }
            let cpu = ProcessFigures.cpuNanoseconds(target.processes) - before
            let seconds = Double(monotonicNanoseconds() - start) / 1e9
            let broken = fleet.failed
            fleet.close()
            tell("restarting, for plain requests")
            try restart(stage)
            let plain = try plainRequests(stage, tokens)
            let streams = Double(settings.streams)
            let ratio = Double(cpu) / Double(max(1, plain))
            return [
                Sample(.storm, "server CPU per reconnect", Double(cpu) / streams / 1e6, "ms"),
                Sample(.storm, "server CPU per plain request", Double(plain) / streams / 1e6, "ms"),
                Sample(.storm, "reconnect / plain request", ratio, ""),
                Sample(.storm, "server CPU of all reconnects", Double(cpu) / 1e9, "s"),
                Sample(.storm, "until all have their catch-up", seconds, "s"),
                .loss(.storm, "streams broken", broken),
            ]
        }
    }

    /// Opens the streams, notes their cursors, and posts changes that are after those.
    private func missSomething(
        _ stage: Stage, _ tokens: [String], _ tell: (String) -> Void
    ) throws -> [String] {
        let target = stage.target(tokens: tokens, thing: "0")
        let fleet = StreamFleet(stage.generator, target)
        defer { fleet.close() }
        try fleet.open(settings.streams, keepsID: true) { tell("\($0) streams are open") }
        // Made now: the server closes a connection that asks nothing for long.
        let poster = try stage.requester(connections: 1)
        defer { poster.close() }
        let cursors = fleet.streams.map(\.scanner.id)
        guard !cursors.contains("") else { throw BenchFailure("a stream gave no cursor") }
        let phases = Phases(
            generator: stage.generator, fleet: fleet, poster: poster, target: target)
        guard try phases.closed(Self.changes).count.outstanding == 0 else {
            throw BenchFailure("changes were lost before the restart")
        }
        return cursors
    }

    private func restart(_ stage: Stage) throws {
        try stage.gateway.stop()
        try stage.gateway.start()
    }

    /// The CPU time of as many new connections that ask for one small thing each, with the same
    /// tokens, in nanoseconds.
    private func plainRequests(_ stage: Stage, _ tokens: [String]) throws -> Int64 {
        let run = HandshakeRun(stage.generator, port: stage.gateway.port, atOnce: Self.atOnce)
        return try Handshakes.cpu(of: stage.gateway.processes, stage.generator) {
            try run.run(settings.streams) { number in
                Request.bytes(
                    "GET", "/v1/apps/\(Stage.app)/clients/\(Stage.client(number))",
                    token: tokens[number])
            }
        }
    }
}
