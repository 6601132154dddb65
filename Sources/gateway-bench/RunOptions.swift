import ArgumentParser

/// The program, the cores and the output of a run.
struct RunOptions: ParsableArguments {
    @Option(help: "The gateway program. Default: timeline-gateway in this program's directory.")
    var gateway: String?

    @Option(help: "Cores of the gateway, such as 0 or 0,2. Default: the first, if there are two.")
    var serverCores: CoreList?

    @Option(help: "Cores of this program. Default: the second.")
    var benchCores: CoreList?

    @Flag(help: "Print one JSON document instead of tables.")
    var json = false

    @Flag(help: "Fail if a bar is missed.")
    var enforce = false

    /// The cores given, or one for the gateway and one for this program where there are two; `nil` for
    /// any.
    var cores: (server: [Int]?, bench: [Int]?) {
        let allowed = Machine.allowedCores()
        let hasTwo = allowed.count >= 2
        return (
            serverCores?.cores ?? (hasTwo ? [allowed[0]] : nil),
            benchCores?.cores ?? (hasTwo ? [allowed[1]] : nil)
        )
    }

    /// Runs `body` on these cores. Throws `ExitCode` when a signal stopped it.
    func run(on cores: [Int]?, _ body: () throws -> Void) throws {
        if let cores { try Machine.pin(to: cores) }
        do {
            try body()
        } catch let interruption as Interruption {
            Terminal.tell("gateway-bench: stopped by a signal; temporary files were removed")
            throw ExitCode(128 + interruption.signal)
        }
    }
}

struct CoreList: ExpressibleByArgument {
    let cores: [Int]

    init?(argument: String) {
        let parts = argument.split(separator: ",", omittingEmptySubsequences: false)
        cores = parts.compactMap { Int($0) }.filter { (0..<1024).contains($0) }
        guard !cores.isEmpty, cores.count == parts.count else { return nil }
    }
}
