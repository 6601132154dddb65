import GatewayTestSupport

extension Repetition {
    private static let devices = 1_000

    /// Measures `push`: the pushes that the gateway's pool makes over TLS and HTTP/2 and the cost of each,
    /// beside h2load with the same requests and the same server, each first in every other repetition.
    func pushes(into report: inout Report) throws {
        guard H2LoadRun.isInstalled else {
            throw BenchFailure("h2load is missing: install nghttp2-client")
        }
        let directory = try GatewayProcess.temporaryDirectory()
        let tokens = (0..<Self.devices).map { place in
            let digits = String(place, radix: 16)
            return String(repeating: "0", count: 64 - digits.count) + digits
        }
        for kind in PushServer.Kind.allCases where kind.isInstalled {
            let server = try PushServer(kind, in: directory, cores: settings.serverCores)
            defer { server.end() }
            let pool = PoolLoad(server: server)
            let h2load = H2LoadRun(
                server: server, directory: directory, cores: settings.benchCores)
            for isPeer in number.isMultiple(of: 2) ? [true, false] : [false, true] {
                tell(
                    "\(settings.requests) pushes to \(kind.rawValue) by \(isPeer ? "h2load" : "us")"
                )
                let figures =
                    isPeer
                    ? try h2load.run(settings.requests, tokens: tokens)
                    : try pool.run(settings.requests, tokens: tokens)
                report.add(samples(figures, name: kind.rawValue), isPeer: isPeer)
            }
        }
    }

    private func samples(_ figures: PoolLoad.Stats, name: String) -> [Sample] {
        let count = Double(settings.requests)
        return [
            Sample(.push, "pushes, \(name)", count / max(figures.seconds, 1e-9), unit: "1/s"),
            Sample(
                .push, "pushes per core, \(name)", count / max(figures.cpuSeconds, 1e-9),
                unit: "1/s"),
            Sample(.push, "CPU per push, \(name)", figures.cpuSeconds * 1e6 / count, unit: "us"),
            .loss(.push, "refused, \(name)", figures.refused),
        ]
    }
}
