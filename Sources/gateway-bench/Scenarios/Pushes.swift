import Foundation
import GatewayTestSupport

extension Repetition {
    private static let devices = 1_000

    /// Measures `push`: the pushes that the gateway's pool makes to the simulated APNs, and the cost of
    /// each.
    func pushes() throws -> [Sample] {
        let directory = try GatewayProcess.temporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let tokens = (0..<Self.devices).map { place in
            let digits = String(place, radix: 16)
            return String(repeating: "0", count: 64 - digits.count) + digits
        }
        let server = try PushServer(in: directory, cores: settings.serverCores)
        defer { server.end() }
        tell("\(settings.requests) pushes")
        let figures = try PoolLoad(server: server).run(settings.requests, tokens: tokens)
        let count = Double(settings.requests)
        return [
            Sample(.push, "pushes", count / max(figures.seconds, 1e-9), unit: "1/s"),
            Sample(.push, "pushes per core", count / max(figures.cpuSeconds, 1e-9), unit: "1/s"),
            Sample(.push, "CPU per push", figures.cpuSeconds * 1e6 / count, unit: "us"),
            .loss(.push, "refused", figures.refused),
        ]
    }
}
