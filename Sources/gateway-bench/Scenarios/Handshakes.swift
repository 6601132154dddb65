/// `handshake`: what a TLS handshake costs the server, full and resumed.
struct Handshakes {
    private static let settleSeconds = 0.2

    let settings: BenchSettings

    /// One repetition on the gateway and, when asked for, on the peer.
    func measure(into report: inout Report, _ tell: (String) -> Void) throws {
        try Stage.with(settings) { stage in
            report.add(
                try run(stage.generator, stage.gateway.port, stage.gateway.processes, tell))
            guard settings.hasPeer else { return }
            try stage.gateway.stop()
            let peer = try NchanPeer(of: stage.gateway, cores: settings.serverCores)
            defer { peer.end() }
            tell("nchan")
            let target = peer.target()
            report.add(
                try run(stage.generator, target.port, target.processes, tell), isPeer: true)
        }
    }

    private func run(
        _ generator: Generator, _ port: UInt16, _ processes: [Int32], _ tell: (String) -> Void
    ) throws -> [Sample] {
        let run = HandshakeRun(generator, port: port)
        try run.run(settings.handshakes / 10 + 1)
        func milliseconds(resuming: Bool) throws -> Double {
            let cpu = try Self.cpu(of: processes, generator) {
                try run.run(settings.handshakes, resuming: resuming)
            }
            return Double(cpu) / 1e6 / Double(settings.handshakes)
        }
        tell("\(settings.handshakes) full handshakes")
        let full = try milliseconds(resuming: false)
        tell("\(settings.handshakes) resumed handshakes")
        try run.fetchTicket()
        let resumed = try milliseconds(resuming: true)
        return [
            Sample(.handshake, "server CPU per full handshake", full, "ms"),
            Sample(.handshake, "server CPU per resumed handshake", resumed, "ms"),
            .loss(.handshake, "tickets refused", settings.handshakes - run.resumed),
        ]
    }

    /// The CPU time that processes take for `work` and its aftermath, in nanoseconds.
    static func cpu(
        of processes: [Int32], _ generator: Generator, _ work: () throws -> Void
    ) throws -> Int64 {
        try generator.run(seconds: settleSeconds) { false }
        let before = ProcessFigures.cpuNanoseconds(processes)
        try work()
        try generator.run(seconds: settleSeconds) { false }
        return ProcessFigures.cpuNanoseconds(processes) - before
    }
}
