extension Repetition {
    /// Measures `handshake`: the server's CPU time of a TLS handshake, full and resumed.
    func handshakes() throws -> [Sample] {
        try Stage.with(settings) { stage in
            let run = HandshakeRun(stage.generator, port: stage.gateway.port)
            try run.run(settings.handshakes / 10 + 1)
            func milliseconds(resuming: Bool) throws -> Double {
                let cpu = try stage.cpuNanoseconds {
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
                Sample(.handshake, "server CPU per full handshake", full, unit: "ms"),
                Sample(.handshake, "server CPU per resumed handshake", resumed, unit: "ms"),
                .loss(.handshake, "tickets refused", settings.handshakes - run.resumed),
            ]
        }
    }
}
