import ArgumentParser
import Foundation
import TimelineClient
import WidgetModel

/// Tests the whole path of a change, repeatedly.
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

            Examples:
              timelinectl canary --app com.mygame
              timelinectl canary --app com.mygame --once || page-somebody
              timelinectl canary --interval 30 --textfile /var/lib/node_exporter/canary.prom
            """)

    @OptionGroup var options: CommonOptions
    @OptionGroup var app: AppOption

    @Option(help: ArgumentHelp("The canary's client id.", valueName: "id"))
    var client = "timeline-canary"

    @Option(help: "The widget kind to follow.")
    var kind: String?

    @Option(help: ArgumentHelp("Seconds between two changes.", valueName: "seconds"))
    var interval = 60

    @Option(help: ArgumentHelp("Timeout for a notification, in seconds.", valueName: "seconds"))
    var patience = 20

    @Option(help: ArgumentHelp("Write metrics here after every round.", valueName: "file"))
    var textfile: String?

    @Flag(help: "Exit after one round and remove the registration.")
    var once = false

    func validate() throws {
        guard Identifier.isValid(client) else {
            throw ValidationError("a client id is 1 to 128 characters of A-Z a-z 0-9 . _ ~ -")
        }
        guard (1...86_400).contains(interval), (1...3_600).contains(patience) else {
            throw ValidationError("--interval must be 1 to 86400 and --patience 1 to 3600")
        }
    }

    func run() async throws {
        let app = try app.required()
        let service = GatewayService(connection: try options.connection(), app: app)
        var figures = CanaryFigures(app: app)
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
                round = .failed("\(error)")
            }
            figures.count(round, at: Int64(Date().timeIntervalSince1970))
            if once { await canary?.leave() }
            Terminal.print(round.json, as: options.form) {
                "\(Date().ISO8601Format())  \(round.text)"
            }
            if let textfile { try write(figures, to: textfile) }
            if once {
                if let status = Self.status(of: round) { throw status }
                return
            }
            try await Task.sleep(until: started + .seconds(interval), clock: .continuous)
        }
    }

    /// Makes a plan from the catalog in force, and registers the client.
    private func begin(_ service: GatewayService) async throws(GatewayFailure) -> Canary {
        let answer = try await service.answer(
            to: GatewayRequest(target: "\(service.base)/catalog"))
        // A value that no other widget has; it stays the same while this program runs.
        let value = "canary-\(UUID().uuidString.lowercased())"
        let catalog: Catalog
        do throws(DocumentRefusal) {
            catalog = try Catalog(
                contentType: answer.head["content-type"], body: answer.body, app: service.app,
                limits: .none)
        } catch {
            throw .unreadable("its catalog cannot be read: \(error)")
        }
        let plan: CanaryPlan
        do throws(CanaryPlan.Impossible) {
            plan = try CanaryPlan(catalog, kind: kind, value: value)
        } catch {
            throw .connection(ConnectionError(.badRequest, error.reason))
        }
        let canary = Canary(
            service: service, client: client, plan: plan, patience: .seconds(patience))
        try await canary.register()
        return canary
    }

    private func write(_ figures: CanaryFigures, to path: String) throws {
        do {
            // The collector reads files with this suffix; the atomic write never shows it half a
            // file.
            try Data(figures.text.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
        } catch {
            Terminal.complain("timelinectl: \(path) cannot be written: \(error)")
            throw ExitStatus.usage
        }
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
