import ArgumentParser
import Foundation
import GatewayTestSupport

extension GatewayProcess {
    private static let startSeconds = 60.0

    /// Returns the path of the gateway's program: the one named, or the one beside this program.
    static func measuredProgram(_ named: String?) throws -> String {
        if let named {
            guard FileManager.default.isExecutableFile(atPath: named) else {
                throw ValidationError("--gateway: \(named) is not a program.")
            }
            return named
        }
        guard let beside = try? program(named: "timeline-gateway") else {
            throw ValidationError(
                "timeline-gateway is missing: build it (swift build -c release), or name one with "
                    + "--gateway.")
        }
        return beside
    }

    /// Makes a gateway that is not running yet. It may use only these `cores`; `nil` for any.
    /// `launcher` is a program with arguments that becomes the gateway. `options` are lines of its
    /// configuration; none for the development mode.
    static func measured(
        program: String, cores: [Int]?, launcher: [String] = [], options: [String] = []
    ) throws -> GatewayProcess {
        let configuration = try options.isEmpty ? nil : GatewayConfiguration(options)
        return try GatewayProcess(
            program: program, data: configuration?.folder, configuration: configuration?.file,
            admin: freeAddress(), wrapper: Machine.command(launcher, on: cores), startsNow: false)
    }

    /// Starts it and waits until it accepts connections. Throws ``Interruption``, or
    /// ``BenchFailure`` with the end of its standard error.
    func startMeasured() throws {
        try launch()
        let end = monotonicNanoseconds() + Int64(Self.startSeconds * 1e9)
        while !waitUntilReady(seconds: 0.1) {
            try Interruption.check()
            guard exit == nil, monotonicNanoseconds() < end else {
                throw BenchFailure("the gateway did not start:\n\(standardErrorTail)")
            }
        }
    }

    /// Ends it by SIGTERM and starts it again, as another process on another port.
    func restartMeasured() throws {
        let exit = terminate()
        guard exit == .status(0) else {
            throw BenchFailure(
                "SIGTERM ended the gateway with \(exit.map { "\($0)" } ?? "nothing")")
        }
        try startMeasured()
    }

    var port: UInt16 { url.split(separator: ":").last.flatMap { UInt16($0) } ?? 0 }
}
