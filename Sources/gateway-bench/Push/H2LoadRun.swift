import Foundation
import GatewaySigning

/// nghttp2's load generator, with the same requests as a pool's.
struct H2LoadRun {
    private static let program = "/usr/bin/h2load"
    private static let timeoutSeconds = 600.0

    /// Whether h2load is installed.
    static var isInstalled: Bool { FileManager.default.isExecutableFile(atPath: program) }

    let server: PushServer
    let directory: String
    let cores: [Int]?

    /// Makes as many requests by one connection.
    func run(_ count: Int, tokens: [String]) throws -> PoolLoad.Stats {
        let (list, body) = (directory + "/targets", directory + "/body")
        try tokens.map { "https://127.0.0.1:\(server.port)/3/device/\($0)" }
            .joined(separator: "\n").write(toFile: list, atomically: true, encoding: .utf8)
        try #"{"aps":{"content-changed":true}}"#
            .write(toFile: body, atomically: true, encoding: .utf8)
        let token = try server.key.providerToken(
            keyID: PushServer.keyID, team: PushServer.team,
            issuedAt: Int64(Date().timeIntervalSince1970))
        let before = Self.cpuSecondsOfChildren
        let text = try Machine.run(
            [
                Self.program, "-n", "\(count)", "-c", "1", "-m", "\(PoolLoad.window)", "-t", "1",
                "-i", list,
                "-d", body, "-H", "authorization: bearer \(token)",
                "-H", "apns-push-type: widgets",
                "-H", "apns-topic: \(PoolLoad.app).push-type.widgets",
            ], on: cores, seconds: Self.timeoutSeconds)
        guard let seconds = Self.seconds(text), let accepted = Self.accepted(text) else {
            throw BenchFailure("h2load printed no results: \(text.suffix(1_000))")
        }
        return PoolLoad.Stats(
            seconds: seconds, cpuSeconds: Self.cpuSecondsOfChildren - before,
            refused: count - accepted)
    }

    /// The time in `finished in 1.23s, …`, or with `ms` or `us`.
    static func seconds(_ output: String) -> Double? {
        guard
            let line = output.split(separator: "\n").first(where: { $0.hasPrefix("finished in ") })
        else { return nil }
        let text = line.dropFirst("finished in ".count).prefix { $0 != "," }
        for (unit, scale) in [("ms", 1e-3), ("us", 1e-6), ("s", 1.0)] where text.hasSuffix(unit) {
            return Double(text.dropLast(unit.count)).map { $0 * scale }
        }
        return nil
    }

    /// The count in `status codes: 2000 2xx, …`.
    static func accepted(_ output: String) -> Int? {
        let prefix = "status codes: "
        let line = output.split(separator: "\n").first { $0.hasPrefix(prefix) }
        return line.flatMap { Int($0.dropFirst(prefix.count).prefix { $0 != " " }) }
    }

    /// The CPU time of processes that were started here and have ended.
    private static var cpuSecondsOfChildren: Double {
        var usage = rusage()
        guard getrusage(__rusage_who_t(RUSAGE_CHILDREN.rawValue), &usage) == 0 else { return 0 }
        return [usage.ru_utime, usage.ru_stime].reduce(0) {
            $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1e6
        }
    }
}
