import ArgumentParser
import Foundation
import GatewayTestSupport
import WidgetModel

struct ScenarioChoice: ExpressibleByArgument {
    let scenarios: [ScenarioName]

    static var allValueStrings: [String] { ["all"] + ScenarioName.allCases.map(\.rawValue) }

    init?(argument: String) {
        if argument == "all" {
            scenarios = ScenarioName.usual
        } else {
            guard let scenario = ScenarioName(rawValue: argument) else { return nil }
            scenarios = [scenario]
        }
    }
}

/// Runs the command that the first argument names.
@main
enum Main {
    static func main() {
        let arguments = CommandLine.arguments.dropFirst()
        switch arguments.first {
        case ComplexityCommand.name: ComplexityCommand.main(Array(arguments.dropFirst()))
        default: GatewayBench.main(Array(arguments))
        }
    }
}

struct GatewayBench: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "gateway-bench",
        abstract: "Measure a real timeline gateway on this machine.",
        discussion: """
            Starts `timeline-gateway serve` on a temporary directory, loads it over
            TLS 1.3 and HTTP/1.1 from one thread, and stops it. Server and load generator
            each run on their own core if there are two.

            SCENARIOS
              all        all except costs and cluster (default)
            \(ScenarioName.allCases.map(\.help).joined(separator: "\n"))

            In addition, `gateway-bench complexity` sends the largest documents and checks
            that they do not delay another app's posts; see its --help.

            CPU is the server's own, from /proc. It includes kernel work on its behalf; on
            loopback that includes the receiver's network path too, so compare ratios. The
            ranges show the machine's noise.

            EXIT STATUS
              0    measured, without loss
              1    a delivery was lost, a request failed or a scenario could not be
                   measured; with --enforce also if a bar is missed
              64   invalid command line
              130  stopped by Ctrl-C: 128 and the signal's number

            EXAMPLES
              gateway-bench --quick
              gateway-bench fanout latency --streams 10000 --repetitions 5
              gateway-bench all --quick --json > figures.json
              gateway-bench push --requests 50000 --repetitions 5
              gateway-bench costs --enforce
            """)

    @Argument(help: "Scenarios to measure.")
    var scenarios: [ScenarioChoice] = []

    private var chosen: [ScenarioName] {
        let chosen = scenarios.flatMap(\.scenarios)
        return chosen.isEmpty ? ScenarioName.usual : chosen
    }

    @OptionGroup var size: SizeOptions

    @OptionGroup var options: RunOptions

    @Flag(help: .hidden)
    var inProcess = false

    @Option(help: .hidden)
    var countedChanges: Int?

    @Option(help: .hidden)
    var pushServer: String?

    @Option(help: .hidden)
    var pushPort = 0

    func run() throws {
        Interruption.install()
        if let pushServer {
            do {
                try PushServer.serve(pushServer, port: pushPort)
            } catch is Interruption {
                return
            }
        }
        let limit = raiseDescriptorLimit()
        let settings = try settings()
        let fitting = limit - Machine.descriptorsReserve
        guard settings.streams <= fitting else {
            throw ValidationError(
                "\(settings.streams) streams are too many: this machine "
                    + "allows \(limit) open files (ulimit -Hn), enough for \(fitting) streams.")
        }
        let machine = Machine.describe()
        var session = BenchSession(settings: settings, printsTables: !options.json)
        try options.run(on: settings.benchCores) { try session.run(chosen) }
        let report = session.report
        if options.json {
            Terminal.print(report.json(machine: machine, settings: settings.json).text)
        }
        if report.hasLosses || (options.enforce && report.missesBar) { throw ExitCode.failure }
    }

    private func settings() throws -> BenchSettings {
        let (serverCores, benchCores) = options.cores
        return BenchSettings(
            gateway: try GatewayProcess.measuredProgram(options.gateway),
            serverCores: serverCores, benchCores: benchCores,
            isQuick: size.quick,
            repetitions: size.repetitions ?? (size.quick ? 1 : chosen.count == 1 ? 5 : 3),
            streams: size.value(size.streams, 10_000, quick: 1_000),
            rate: size.rate ?? Double(5 * size.value(size.streams, 10_000, quick: 1_000)),
            requests: size.value(size.requests, 20_000, quick: 2_000),
            widgets: size.value(size.widgets, 1_000_000, quick: 50_000),
            isInProcess: inProcess, countedChanges: countedChanges)
    }
}
