import ArgumentParser
import Foundation
import TimelineRuntime
import WidgetModel

struct WatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Print a client's notifications as they arrive.",
        discussion: """
            Verifies every notification, prints its arrival time and what is stale, and reconnects \
            until interrupted. It acknowledges nothing. If a notification fails verification, it \
            prints the reason and retries from the same cursor after a while.

            The command given with --exec runs in a shell for each verified notification, one at a \
            time, with the claims as JSON in TIMELINE_NOTIFICATION.

            Examples:
              timelinectl watch --client device-1
              timelinectl watch --client device-1 --since "$CURSOR" --cursors
              timelinectl watch --client renderer --exec 'make widgets'
              timelinectl watch --client device-1 --count 1 --json
            """)

    @OptionGroup var options: CommonOptions
    @OptionGroup var app: AppOption
    @OptionGroup var client: ClientOption

    @Option(help: "Only notifications for this widget kind.")
    var kind: String?

    @Option(
        help: ArgumentHelp(
            "The cursor to resume from. Default: everything is stale.", valueName: "cursor"))
    var since: String?

    @Option(
        name: .customLong("exec"),
        help: ArgumentHelp("Run this for each notification.", valueName: "command"))
    var command: String?

    @Option(help: "Exit after this many verified notifications.")
    var count: Int?

    @Flag(help: "Print the cursor whenever it moves.")
    var cursors = false

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count must be at least 1") }
    }

    func run() async throws {
        let connection = try options.connection()
        let app = try app.required()
        let feed = NotificationFeed(
            service: GatewayService(connection: connection, app: app), client: client.client,
            kind: kind)
        let watch = NotificationWatch(
            verifier: PublishedKeyVerifier(connection: connection, app: app), since: since,
            countMax: count, command: command, form: options.form, printsCursors: cursors)
        var isFirst = true
        while await !watch.isDone {
            do throws(GatewayFailure) {
                let stream = try await feed.open(since: await watch.cursor)
                isFirst = false
                await watch.opened(stream.opening)
                try await stream.read { await watch.take($0) }
            } catch {
                // A failure from the start is a mistake to correct, not an outage to wait out.
                if isFirst || !error.mayPass { throw Terminal.fail(error, as: options.form) }
                Terminal.complain("timelinectl: \(error)")
            }
            if await watch.isDone { break }
            try? await Task.sleep(for: await watch.wait())
        }
    }
}

/// The state of `watch` between two streams.
actor NotificationWatch {
    private let verifier: PublishedKeyVerifier
    private let command: String?
    private let form: OutputForm
    private let printsCursors: Bool
    private let origin = ContinuousClock.now
    private var left: Int?
    private var serverTime = ServerTime()
    private var backoff = Backoff(base: .seconds(1), cap: .seconds(60))
    private var generator = SystemRandomNumberGenerator()

    /// The position up to which everything is printed.
    private(set) var cursor: String?

    init(
        verifier: PublishedKeyVerifier, since: String?, countMax: Int?, command: String?,
        form: OutputForm, printsCursors: Bool
    ) {
        self.verifier = verifier
        cursor = since
        left = countMax
        self.command = command
        self.form = form
        self.printsCursors = printsCursors
    }

    var isDone: Bool { left == 0 }

    func wait() -> Duration { backoff.next(using: &generator) }

    func opened(_ opening: NotificationFeed.Opening) {
        serverTime.note(opening.date, now: origin.duration(to: .now))
    }

    /// - Returns: Whether to continue reading.
    func take(_ element: NotificationFeed.Element) async -> Bool {
        switch element {
        case .retry(let wait):
            backoff.rebase(wait)
        case .moved(let cursor):
            backoff.succeeded()
            self.cursor = cursor.text
            guard printsCursors else { return true }
            let line: JSONValue = ["cursor": .string(cursor.text)]
            Terminal.print(line, as: form) { "cursor \(cursor.text)" }
        case .notification(let text):
            let seconds = serverTime.seconds(
                now: origin.duration(to: .now), fallback: Int64(Date().timeIntervalSince1970))
            let report = await NotificationReport.of(text, by: verifier, serverTime: seconds)
            Terminal.print(report.json, as: form) { report.text }
            guard case .success(let claims) = report.outcome else { return false }
            if let command { await ShellCommand.run(command, claims: claims) }
            left = left.map { $0 - 1 }
        }
        return !isDone
    }
}
