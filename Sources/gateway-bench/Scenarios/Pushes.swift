import Foundation
import GatewayTLS
import GatewayTestSupport
import WidgetModel

extension Repetition {
    private static let devices = 1_000
    /// The most that a push may cost a gateway, as a multiple of what it costs the pool.
    private static let endToEndMax = 3.0
    /// The longest time without a push.
    private static let silenceSeconds = 60.0

    /// Measures `push`: the pushes that the gateway's pool makes to the simulated APNs, and the cost of
    /// each; and then that of a push of a gateway.
    func pushes() throws -> [Sample] {
        let directory = try GatewayProcess.temporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let server = try PushServer(in: directory, cores: settings.serverCores)
        defer { server.end() }
        tell("\(settings.requests) pushes")
        let figures = try PoolLoad(server: server).run(
            settings.requests, tokens: Self.tokens(Self.devices))
        let count = Double(settings.requests)
        let pool = figures.cpuSeconds * 1e6 / count
        tell("\(settings.requests) devices of a gateway")
        let gateway = try gatewayPushes(server, in: directory)
        return [
            Sample(.push, "pushes", count / max(figures.seconds, 1e-9), unit: "1/s"),
            Sample(.push, "pushes per core", count / max(figures.cpuSeconds, 1e-9), unit: "1/s"),
            Sample(.push, "CPU per push", pool, unit: "us"),
            .loss(.push, "refused", figures.refused),
            Sample(.push, "CPU per push of a gateway", gateway, unit: "us"),
            Sample(
                .push, "CPU per push, gateway / pool", gateway / max(pool, 1e-9),
                bar: .atMost(Self.endToEndMax)),
        ]
    }

    /// Returns different push tokens.
    private static func tokens(_ count: Int) -> [String] {
        (0..<count).map { place in
            let digits = String(place, radix: 16)
            return String(repeating: "0", count: 64 - digits.count) + digits
        }
    }

    /// Pushes a change to as many devices. Returns the CPU time that a gateway takes for each push:
    /// to decide, count, send and record it; in microseconds.
    private func gatewayPushes(_ server: PushServer, in directory: String) throws -> Double {
        let tokens = Self.tokens(settings.requests)
        let options = [
            "apns:",
            "  - { app: \(Stage.app), team: \(PushServer.team), keyID: \(PushServer.keyID),"
                + " key: \(directory)/key.p8, environment: production }",
            "push:", "  apnsProduction: 127.0.0.1:\(server.port)",
            "  apnsCA: \(server.certificates.ca)",
            // All are due at once.
            "  spreadPerSecond: 1000000000",
        ]
        return try Stage.with(settings, options: options) { stage in
            let requester = try stage.requester()
            var number = 0
            try requester.run {
                guard number < tokens.count else { return nil }
                defer { number += 1 }
                var document = Stage.registration(things: ["0"]).objectValue ?? [:]
                document["delivery"] = .array(addresses(pushToken: tokens[number]))
                return stage.registration(number, .object(document))
            }
            var change: [UInt8]? = stage.change(["0"])
            let cpu = try stage.cpuNanoseconds {
                try requester.run {
                    defer { change = nil }
                    return change
                }
                try waitUntilSent(tokens.count, by: stage)
                // The attempts are stored once a second.
                try stage.generator.run(seconds: 2) { false }
            }
            return Double(cpu) / 1e3 / Double(max(1, tokens.count))
        }
    }

    private func waitUntilSent(_ count: Int, by stage: Stage) throws {
        var (sent, since) = (0.0, monotonicNanoseconds())
        while sent < Double(count) {
            try Interruption.check()
            try stage.generator.run(seconds: 0.2) { false }
            let pushes = try stage.gateway.metrics().labelled("timeline_gateway_pushes_total")
            let now = pushes.filter { $0.labels["outcome"] == "sent" }.reduce(0) { $0 + $1.value }
            if now > sent { (sent, since) = (now, monotonicNanoseconds()) }
            guard Double(monotonicNanoseconds() - since) < Self.silenceSeconds * 1e9 else {
                throw BenchFailure("only \(Int(sent)) of \(count) devices were pushed to")
            }
        }
    }
}
