import ArgumentParser
import Foundation
import GatewayTestSupport
import WidgetModel

/// A fault in the record itself, to see that the judge notices it.
enum Plant: String, CaseIterable, ExpressibleByArgument {
    case loss
}

/// Starts real gateways, does to them what machines and people do, and judges what clients were told.
@main
struct GatewayFaults: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "gateway-faults",
        abstract: "Inject faults into real timeline gateways and check that nothing is lost.",
        discussion: """
            Each row starts `timeline-gateway serve` on a temporary directory, loads it with a
            backend and clients, and injects one kind of fault. Every request and response is
            recorded. Afterwards a judge that shares no code with the gateway checks for accepted
            changes that a client missed before its cursor passed them, notifications that a client
            does not depend on or that report nothing new since its cursor, partially accepted
            batches, duplicate sequences, cursors going back and invalid signatures.

            All randomness comes from the seed, but thread interleaving still differs between runs:
            repeat a seed a few times to reproduce its failure.

            ROWS
            \(Row.all.map(\.help).joined(separator: "\n"))

            EXIT STATUS
              0    every run passed
              1    a guarantee was violated, or a run did not finish
              64   invalid command line

            EXAMPLES
              gateway-faults --row kill --seed 5
              gateway-faults --row kill --row registration --seed 1 --seeds 10 --seconds 20
              gateway-faults --row kill --seed 5 --seconds 5 --plant loss
              gateway-faults --cluster --spread --seeds 200 --seconds 15
              gateway-faults --list
            """)

    @Option(name: .customLong("row"), help: "A row. Repeatable. Default: all.")
    var rows: [Row] = []

    @Option(help: "The first seed.")
    var seed: UInt64 = 1

    @Option(help: "The number of seeds, counted up from the first.")
    var seeds = 1

    @Option(help: "Seconds of faults in one run, without the time to settle.")
    var seconds = 20.0

    @Option(help: "Falsify the record before it is judged: `loss` removes one notification.")
    var plant: Plant?

    @Flag(help: "Of the rows that are not named, take those of a cluster.")
    var cluster = false

    @Flag(help: "Run one row with each seed, in turn, instead of each row with every seed.")
    var spread = false

    @Flag(help: "Run the main rows for a few seconds each, with one seed.")
    var smoke = false

    @Flag(help: "Run every row with the seeds and duration required for a release.")
    var campaign = false

    @Flag(
        help: ArgumentHelp(
            "Pass even if rows were skipped.",
            discussion: "Some need root, strace or faketime; without this option they fail."))
    var allowSkipped = false

    @Flag(help: "Print one JSON document per line instead of text.")
    var json = false

    @Flag(help: "List the rows and exit.")
    var list = false

    func validate() throws {
        guard [smoke, campaign, spread].count(where: \.self) <= 1 else {
            throw ValidationError("--smoke, --campaign and --spread cannot be combined.")
        }
        guard seeds >= 1, seconds > 0, seconds <= 86_400 else {
            throw ValidationError("--seeds must be 1 or more, --seconds above 0.")
        }
    }

    func run() throws {
        if list {
            for row in Row.all { write(row.help) }
            return
        }
        // Crowds of connections need many open files.
        _ = raiseDescriptorLimit()
        var isGood = true
        for (row, seed, seconds) in plan {
            let report = RunReport(row, RowContext(seed: seed, seconds: seconds), plant)
            write(json ? report.json.text : report.text)
            isGood = isGood && report.holds && (allowSkipped || report.skipped == nil)
        }
        if !isGood { throw ExitCode.failure }
    }

    /// The runs, each of a row with a seed and seconds.
    private var plan: [(row: Row, seed: UInt64, seconds: Double)] {
        let rows = rows.isEmpty ? (cluster ? Row.cluster : Row.all) : rows
        if smoke { return rows.compactMap { row in row.smokeSeconds.map { (row, seed, $0) } } }
        if spread {
            return (0..<seeds).map { (rows[$0 % rows.count], seed &+ UInt64($0), seconds) }
        }
        return rows.flatMap { row in
            (0..<UInt64(campaign ? row.seeds : seeds)).map {
                (row, seed &+ $0, campaign ? row.seconds : seconds)
            }
        }
    }

    /// Prints a line at once, into a pipe as well.
    private func write(_ line: String) {
        try? FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8))
    }
}
