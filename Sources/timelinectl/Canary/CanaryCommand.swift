import ArgumentParser
import Foundation
import TimelineRuntime

struct CanaryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "canary",
        abstract: "Post a change every minute and check that it is delivered and acknowledged.",
        discussion: """
            Registers its own client with one widget whose parameter value no other widget has, \
            posts a change that affects only that widget, waits for the notification, verifies it \
            and acknowledges it. The kind is --kind, or the first suitable kind in the catalog; a \
            dedicated kind keeps the canary's reloads out of other kinds' metrics.

            The token needs the scopes catalog:write, changes:write and client, and the id given \
            with --client as its sub: timeline-gateway token --data DIR --app APP \
            --sub timeline-canary --scope "catalog:write changes:write client".

            --textfile writes metrics for node_exporter's textfile collector after every round; the \
            supplied alert rules include one for them. With --once it exits after one round: \
            0 acknowledged, 5 no notification in time, 4 notification failed verification, \
            1 rejected, 3 gateway not reached.

            --audit measures one or more nodes for longer: it registers and posts through them in \
            turn, holds a stream at each, and prints after every change the shares of the last \
            5 minutes' changes that were delivered within 1 s, 10 s and 1 min, each at every node. \
            The share within 10 s is the reliability. A node that cannot be reached delivers \
            nothing. It exits with 0 if the reliability at the end is at least --objective, else \
            with 1.

            Examples:
              timelinectl canary --app com.mygame
              timelinectl canary --app com.mygame --once || page-somebody
              timelinectl canary --interval 30 --textfile /var/lib/node_exporter/canary.prom
              timelinectl canary --audit --for 600 --app com.mygame
              timelinectl canary --audit --node https://one:8443 --node https://two:8443 \\
                --app com.mygame --textfile /var/lib/node_exporter/audit.prom
            """)

    @OptionGroup var options: CommonOptions
    @OptionGroup var app: AppOption
    @OptionGroup var audit: AuditOptions

    @Option(help: ArgumentHelp("The canary's client id.", valueName: "id"))
    var client = "timeline-canary"

    @Option(help: "The widget kind to follow.")
    var kind: String?

    @Option(
        help: ArgumentHelp(
            "Seconds between two changes. Default: 60, or 5 with --audit.", valueName: "seconds"))
    var interval: Int?

    @Option(
        help: ArgumentHelp(
            "Timeout for a notification, in seconds. Default: 20.", valueName: "seconds"))
    var patience: Int?

    @Option(help: ArgumentHelp("Write metrics here after every round.", valueName: "file"))
    var textfile: String?

    @Flag(help: "Exit after one round and remove the registration.")
    var once = false

    func validate() throws {
        try requireID(client, of: "a client")
        guard (1...86_400).contains(interval ?? 60), (1...3_600).contains(patience ?? 20) else {
            throw ValidationError("--interval must be 1 to 86400 and --patience 1 to 3600")
        }
        guard !audit.audit || (!once && patience == nil && interval ?? 1 <= 60) else {
            throw ValidationError(
                "--audit excludes --once and --patience, and its --interval must be 1 to 60")
        }
    }

    func run() async throws {
        let app = try app.required()
        if audit.audit {
            let interval = Duration.seconds(interval ?? AuditOptions.interval)
            let auditor = Auditor(
                nodes: try audit.nodes(options, app: app), client: client, kind: kind,
                interval: interval)
            return try await AuditRun(
                auditor: auditor, app: app, form: options.form, interval: interval,
                textfile: textfile, objective: audit.objectiveInForce,
                duration: audit.runSeconds.map { .seconds($0) }
            ).run()
        }
        let service = GatewayService(connection: try options.connection(), app: app)
        var figures = CanaryStats(app: app)
        var canary: Canary?
        while true {
            let started = ContinuousClock.now
            var round: CanaryRound
            do throws(GatewayFailure) {
                if let canary {
                    round = await canary.round()
                } else {
                    let begun = try await begin(service)
                    canary = begun
                    round = await begun.round()
                }
            } catch {
                if once { throw Terminal.fail(error, as: options.form) }
                round = .failed(Terminal.line(of: error))
            }
            figures.count(round, at: Int64(Date().timeIntervalSince1970))
            if once { await canary?.leave() }
            Terminal.print(round.json, as: options.form) {
                "\(Date().ISO8601Format())  \(round.text)"
            }
            if let textfile { try TextfilePage.write(figures.text, to: textfile) }
            if once {
                if let status = Self.status(of: round) { throw status }
                return
            }
            try await Task.sleep(until: started + .seconds(interval ?? 60), clock: .continuous)
        }
    }

    /// Makes a plan from the catalog in force, and registers the client.
    private func begin(_ service: GatewayService) async throws(GatewayFailure) -> Canary {
        // A value that no other widget has; it stays the same while this program runs.
        let value = "canary-\(UUID().uuidString.lowercased())"
        let catalog = try await service.catalog()
        let plan: CanaryPlan
        do throws(CanaryPlan.Impossible) {
            plan = try CanaryPlan(catalog, kind: kind, value: value)
        } catch {
            throw .connection(ConnectionError(.badRequest, error.reason))
        }
        let canary = Canary(
            service: service, client: client, plan: plan, patience: .seconds(patience ?? 20))
        try await canary.register()
        return canary
    }

    /// The exit status that one round ends the program with; `nil` for a successful round.
    static func status(of round: CanaryRound) -> ExitCode? {
        switch round {
        case .confirmed: nil
        case .lost: ExitStatus.missed
        case .forged: ExitStatus.unverified
        case .failed: ExitStatus.refused
        }
    }
}
