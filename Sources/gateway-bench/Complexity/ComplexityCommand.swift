import ArgumentParser
import Foundation
import GatewayTestSupport
import WidgetModel

struct ComplexityCommand: ParsableCommand {
    /// The first argument.
    static let name = "complexity"

    static let configuration = CommandConfiguration(
        commandName: "gateway-bench " + name,
        abstract: "Check that one app's documents do not delay another app.",
        discussion: """
            Starts `timeline-gateway serve` on a temporary directory without effective rate
            limits, and sends it the largest documents that the size limits allow, one shape
            after another, on a few connections. Meanwhile a backend of another app, the
            bystander, posts a change every 50 ms. Prints how long its posts took, which turns
            of shared threads took more than 5 ms of CPU, and which routes were covered. A shape
            with such a turn is measured again, at most twice, because the host of a virtual
            machine may have caused the delay.

            SHAPES
            \(AttackShape.allCases.map(\.help).joined(separator: "\n"))

            EXIT STATUS
              0    measured
              1    measurement failed; with --enforce also if a bound is exceeded
              64   invalid command line
              130  stopped by Ctrl-C: 128 and the signal's number

            EXAMPLES
              gateway-bench complexity --enforce
              gateway-bench complexity --shape explain --shape diff --seconds 10
            """)

    @Option(help: "A shape. Repeatable. Default: all, and every route must be covered.")
    var shape: [AttackShape] = []

    @Option(help: "Duration of each shape.")
    var seconds = 3.0

    @OptionGroup var options: RunOptions

    func validate() throws {
        guard (0.1...3_600).contains(seconds) else {
            throw ValidationError("--seconds must be 0.1 to 3600.")
        }
    }

    func run() throws {
        Interruption.install()
        _ = raiseDescriptorLimit()
        let program = try GatewayProcess.measuredProgram(options.gateway)
        let machine = Machine.describe()
        let (serverCores, benchCores) = options.cores
        let run = ComplexityRun(
            program: program, cores: serverCores,
            shapes: shape.isEmpty ? AttackShape.allCases : shape, seconds: seconds)
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
