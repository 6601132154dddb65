import ArgumentParser
import Foundation
import TimelineRuntime

/// The options of an audit of several nodes.
struct AuditOptions: ParsableArguments {
    static let nodesMax = 16
    /// The default of `--interval`, seconds.
    static let interval = 5

    @Flag(help: "Audit one or more nodes and print the share of changes delivered in time.")
    var audit = false

    @Option(
        help: ArgumentHelp("A node to audit, repeatable. Default: --url.", valueName: "url"))
    var node: [String] = []

    @Option(
        name: .customLong("for"),
        help: ArgumentHelp(
            "Run time of the audit. Default: until Ctrl-C or SIGTERM.", valueName: "seconds"))
    var runSeconds: Double?

    @Option(
        help: ArgumentHelp(
            "Share of changes to deliver within 10 s (0 to 1). Default: 0.999.",
            valueName: "share"))
    var objective: Double?

    var objectiveInForce: Double { objective ?? 0.999 }

    func validate() throws {
        guard audit || (node.isEmpty && runSeconds == nil && objective == nil) else {
            throw ValidationError("--node, --for and --objective need --audit")
        }
        guard node.count <= Self.nodesMax, Set(node).count == node.count else {
            throw ValidationError("--node may be given \(Self.nodesMax) times, each another URL")
        }
        guard runSeconds.map({ 0.1...2_500_000 ~= $0 }) ?? true else {
            throw ValidationError("--for must be 0.1 to 2,500,000")
        }
        guard objective.map({ 0...1 ~= $0 }) ?? true else {
            throw ValidationError("--objective must be 0 to 1")
        }
    }

    /// Returns the nodes, with the other options of the connection. Throws `ValidationError` if a
    /// URL is missing or invalid.
    func nodes(_ options: CommonOptions, app: String) throws -> [Auditor.Node] {
        let urls: [String?] = node.isEmpty ? [nil] : node
        return try urls.map { url in
            var options = options
            if let url { options.url = url }
            var configuration = try options.configuration()
            configuration.connectDeadline = Auditor.requestTimeout
            configuration.requestDeadline = Auditor.requestTimeout
            let connection: AdvisedConnection
            do throws(ConnectionError) {
                connection = try AdvisedConnection(configuration)
            } catch {
                throw ValidationError("\(configuration.gateway): \(error.message)")
            }
            return Auditor.Node(
                name: configuration.gateway,
                service: GatewayService(connection: connection, app: app))
        }
    }
}

/// One run of an auditor, from the first round to the exit status.
struct AuditRun {
    let auditor: Auditor
    let app: String
    let form: OutputForm
    let interval: Duration
    let textfile: String?
    let objective: Double
    let duration: Duration?

    /// Runs until it is interrupted, or until the run time is over and every change is decided.
    /// Throws `ExitCode` if the objective is missed or not known.
    func run() async throws {
        let interruption = Interruption()
        let end = duration.map { ContinuousClock.now + $0 }
        func isOver() -> Bool { interruption.hasCome || end.map { .now >= $0 } ?? false }
        repeat {
            let next = ContinuousClock.now + interval
            do throws(CanaryPlan.Impossible) {
                try await auditor.round()
            } catch {
                await auditor.leave()
                throw Terminal.fail(
                    .connection(ConnectionError(.badRequest, error.reason)), as: form)
            }
            while .now < next, !isOver() { try await Task.sleep(for: .milliseconds(50)) }
            if !isOver() { try publish(await auditor.report) }
        } while !isOver()
        while !interruption.hasCome, await auditor.isPending {
            try await Task.sleep(for: .milliseconds(50))
        }
        let report = await auditor.report
        await auditor.leave()
        try publish(report)
        guard report.isMet(objective) else { throw ExitStatus.refused }
    }

    private func publish(_ report: AuditReport) throws {
        let now = Date()
        Terminal.print(report.json(objective: objective), as: form) {
            "\(now.ISO8601Format())  \(report.text)"
        }
        guard let textfile else { return }
        let second = Int64(now.timeIntervalSince1970)
        try TextfilePage.write(
            report.metrics(app: app, objective: objective, second: second), to: textfile)
    }
}
