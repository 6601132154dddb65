import ArgumentParser
import Foundation
import WidgetModel

/// Sends a real gateway the largest documents while somebody else posts.
struct ComplexityCommand: ParsableCommand {
    /// What comes after the program's name.
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

    @Option(help: "The gateway's program. Default: timeline-gateway beside this one.")
    var gateway: String?

    @Option(help: "Cores of the gateway, such as 0 or 0,2. Default: the first, if there are two.")
    var serverCores: CoreList?

    @Option(help: "Cores of this program. Default: the second.")
    var benchCores: CoreList?

    @Flag(help: "Print one JSON document instead of tables.")
    var json = false

    @Flag(help: "Fail when a bound is missed.")
    var enforce = false

    func validate() throws {
        guard (0.1...3_600).contains(seconds) else {
            throw ValidationError("--seconds must be 0.1 to 3600.")
        }
    }

    func run() throws {
        Interruption.install()
        _ = Machine.raiseDescriptorLimit()
        let program = try GatewayBench.program(gateway)
        let machine = Machine.describe()
        let allowed = Machine.allowedCores()
        let hasTwo = allowed.count >= 2
        if let cores = benchCores?.cores ?? (hasTwo ? [allowed[1]] : nil) {
            try Machine.pin(to: cores)
        }
        let run = ComplexityRun(
            program: program, cores: serverCores?.cores ?? (hasTwo ? [allowed[0]] : nil),
            shapes: shape.isEmpty ? ShapeName.allCases : shape, seconds: seconds)
        let report: ComplexityReport
        do {
            report = try run.run { Terminal.tell($0) }
        } catch let interruption as Interruption {
            Terminal.tell("gateway-bench: stopped by a signal; nothing is left behind")
            throw ExitCode(128 + interruption.signal)
        } catch {
            Terminal.tell("gateway-bench: complexity: \(error)")
            throw ExitCode.failure
        }
        Terminal.print(json ? report.json(machine: machine).text : report.text)
        if enforce, !report.verdict.isMet { throw ExitCode.failure }
    }
}
