import Foundation

/// `push`: how many pushes the gateway's pool makes over TLS and HTTP/2, and what each costs it, beside
/// h2load with the same requests and the same server; in turns, each first in every other repetition.
struct Pushes {
    private static let devices = 1_000

    let settings: BenchSettings

    /// One repetition against each server there is.
    func measure(into report: inout Report, _ repetition: Int, _ tell: (String) -> Void) throws {
        guard H2LoadRun.isInstalled else {
            throw BenchFailure("h2load is missing: install nghttp2-client")
        }
        let directory = NSTemporaryDirectory() + "gateway-bench-push-" + UUID().uuidString
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
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
            for isPeer in repetition.isMultiple(of: 2) ? [true, false] : [false, true] {
                tell("\(settings.requests) pushes to \(kind.name) by \(isPeer ? "h2load" : "us")")
                let figures =
                    isPeer
                    ? try h2load.run(settings.requests, tokens: tokens)
                    : try pool.run(settings.requests, tokens: tokens)
                report.add(samples(figures, kind), isPeer: isPeer)
            }
        }
    }

    private func samples(_ figures: PoolLoad.Figures, _ kind: PushServer.Kind) -> [Sample] {
        let count = Double(settings.requests)
        return [
            Sample(.push, "pushes, \(kind.name)", count / max(figures.seconds, 1e-9), "1/s"),
            Sample(
                .push, "pushes per core, \(kind.name)", count / max(figures.cpuSeconds, 1e-9),
                "1/s"),
            Sample(.push, "CPU per push, \(kind.name)", figures.cpuSeconds * 1e6 / count, "us"),
            .loss(.push, "refused, \(kind.name)", figures.refused),
        ]
    }
}
