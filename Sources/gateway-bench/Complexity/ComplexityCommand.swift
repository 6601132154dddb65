import ArgumentParser
import Foundation
import GatewayTestSupport
import WidgetModel

/// Sends a real gateway the largest documents while another app posts.
struct ComplexityCommand: ParsableCommand {
    /// The first argument.
    static let name = "complexity"

    static let configuration = CommandConfiguration(
        commandName: "gateway-bench " + name,
        abstract: "See that nobody's documents keep another app waiting.",
        discussion: """
            Starts `timeline-gateway serve` on a temporary directory with rates that refuse
            nobody, and sends it on a few connections, one shape after the other, the
            largest documents that the limits allow. Meanwhile a backend of another app
            posts a change every 50 ms. Then says how long its posts took, which turns of
            threads that all share took more than 5 ms of CPU, and which routes were
            reached. A shape with such a turn is measured again, at most twice: the host of a
            virtual machine may have taken the time.

            SHAPES
            \(ShapeName.allCases.map(\.help).joined(separator: "\n"))

            EXIT STATUS
              0    measured
              1    it could not be measured; with --enforce also when a bound was missed
              64   the command line is wrong
              130  stopped by Ctrl-C: 128 and the signal's number

            EXAMPLES
              gateway-bench complexity --enforce
              gateway-bench complexity --shape explain --shape diff --seconds 10
            """)

    @Option(help: "A shape; repeat for more. Default: all, and every route has to be reached.")
    var shape: [ShapeName] = []

    @Option(help: "How long each shape goes on.")
    var seconds = 3.0

    @OptionGroup var options: RunOptions

    func validate() throws {
        guard (0.1...3_600).contains(seconds) else {
            throw ValidationError("--seconds must be 0.1 to 3600.")
        }
    }

    func run() throws {
        Interruption.install()
        _ = Machine.raiseDescriptorLimit()
        let program = try GatewayProcess.measuredProgram(options.gateway)
        let machine = Machine.describe()
        let (serverCores, benchCores) = options.cores
        let run = ComplexityRun(
            program: program, cores: serverCores,
            shapes: shape.isEmpty ? ShapeName.allCases : shape, seconds: seconds)
        try options.run(on: benchCores) {
            do {
                let report = try run.run { Terminal.tell($0) }
                Terminal.print(options.json ? report.json(machine: machine).text : report.text)
                if options.enforce, !report.verdict.isMet { throw ExitCode.failure }
            } catch  where !(error is Interruption || error is ExitCode) {
                Terminal.tell("gateway-bench: complexity: \(error)")
                throw ExitCode.failure
            }
        }
    }
}
