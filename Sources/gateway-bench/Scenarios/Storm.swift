import GatewayTestSupport

extension Repetition {
    private static let missedChanges = 5

    /// Measures `storm`: all streams reconnect at once after a restart, from where they were.
    func storm() throws -> [Sample] {
        try Stage.with(settings) { stage in
            tell("registering \(settings.streams) clients")
            let tokens = try stage.makeClients(settings.streams)
            let cursors = try missChanges(stage, tokens)
            tell("restarting")
            try stage.gateway.restartMeasured()
            let start = monotonicNanoseconds()
            let before = ProcessStats.cpuNanoseconds(stage.gateway.pid)
            let fleet = StreamFleet(stage, tokens: tokens, cursors: cursors)
            try fleet.open(settings.streams) { tell("\($0) streams have caught up") }
            let cpu = ProcessStats.cpuNanoseconds(stage.gateway.pid) - before
            let seconds = Double(monotonicNanoseconds() - start) / 1e9
            fleet.close()
            tell("restarting, for plain requests")
            try stage.gateway.restartMeasured()
            let plain = try plainRequests(stage, tokens)
            let streams = Double(settings.streams)
            let ratio = Double(cpu) / Double(max(1, plain))
            return [
                Sample(.storm, "server CPU per reconnect", Double(cpu) / streams / 1e6, unit: "ms"),
                Sample(
                    .storm, "server CPU per plain request", Double(plain) / streams / 1e6,
                    unit: "ms"),
                Sample(.storm, "reconnect / plain request", ratio),
                Sample(.storm, "server CPU of all reconnects", Double(cpu) / 1e9, unit: "s"),
                Sample(.storm, "until all have their catch-up", seconds, unit: "s"),
                .loss(.storm, "streams broken", fleet.failed),
            ]
        }
    }

    /// Opens the streams, reads their cursors, and posts changes that are after those.
    private func missChanges(_ stage: Stage, _ tokens: [String]) throws -> [String] {
        let fleet = StreamFleet(stage, tokens: tokens)
        defer { fleet.close() }
        try open(settings.streams, of: fleet, keepsID: true)
        let cursors = fleet.streams.map(\.scanner.id)
        guard !cursors.contains("") else { throw BenchFailure("a stream gave no cursor") }
        let phases = try Phases(stage, fleet, warmUpChanges: Self.missedChanges)
        guard phases.warmUp.count.outstanding == 0 else {
            throw BenchFailure("changes were lost before the restart")
        }
        return cursors
    }

    /// Returns the CPU time of as many new connections that ask for one small thing each, with the
    /// same tokens, in nanoseconds.
    private func plainRequests(_ stage: Stage, _ tokens: [String]) throws -> Int64 {
        let requests = PlainRequests(stage.generator, port: stage.gateway.port)
        return try stage.cpuNanoseconds {
            try requests.run(settings.streams) { number in
                Request.bytes("GET", Stage.path(ofClient: number), token: tokens[number])
            }
        }
    }
}
