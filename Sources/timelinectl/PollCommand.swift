import ArgumentParser
import Foundation
import TimelineRuntime
import WidgetModel

struct PollCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "poll",
        abstract: "Show what is currently stale for a client.",
        discussion: """
            Verifies every notification against the gateway's published keys and prints the cursor \
            after the last one. Acknowledges nothing: polling again returns the same \
            notifications. Needs a token with the scope client for this client.

            Examples:
              timelinectl poll --client device-1
              timelinectl poll --client device-1 --since "$CURSOR" --wait 20
              timelinectl poll --client device-1 --kind com.mygame.character-detail --json
            """)

    @OptionGroup var options: CommonOptions
    @OptionGroup var app: AppOption
    @OptionGroup var client: ClientOption

    @Option(help: "Only notifications for this widget kind.")
    var kind: String?

    @Option(
        help: ArgumentHelp("Cursor. Default: everything is stale.", valueName: "cursor")
    )
    var since: String?

    @Option(
        help: ArgumentHelp(
            "Wait for a notification (long poll).", valueName: "seconds"))
    var wait: Int?

    func validate() throws {
        if let wait, wait < 0 || wait > NotificationFeed.pollWaitSecondsMax {
            throw ValidationError("--wait must be 0 to \(NotificationFeed.pollWaitSecondsMax)")
        }
    }

    func run() async throws {
        let connection = try options.connection()
        let app = try app.required()
        let feed = NotificationFeed(
            service: GatewayService(connection: connection, app: app), client: client.client,
            kind: kind)
        let poll: NotificationFeed.Poll
        do throws(GatewayFailure) {
            poll = try await feed.poll(since: since, wait: wait)
        } catch {
            throw Terminal.fail(error, as: options.form)
        }
        let verifier = PublishedKeyVerifier(connection: connection, app: app)
        var serverTime = ServerTime()
        serverTime.note(poll.opening.date, now: .zero)
        let seconds = serverTime.seconds(
            now: .zero, fallback: Int64(Date().timeIntervalSince1970))
        var reports: [NotificationReport] = []
        for notification in poll.notifications {
            reports.append(
                await NotificationReport.of(notification, by: verifier, serverTime: seconds))
        }
        Terminal.print(Self.json(poll, reports), as: options.form) { Self.text(poll, reports) }
        if reports.contains(where: \.isUnverified) { throw ExitStatus.unverified }
    }

    static func json(
        _ poll: NotificationFeed.Poll, _ reports: [NotificationReport]
    ) -> JSONValue {
        var object: JSONObject = ["notifications": .array(reports.map(\.json))]
        if let cursor = poll.cursor { object["cursor"] = .string(cursor.text) }
        if let resumed = poll.opening.resumedFrom {
            object["resumedFrom"] = .string(resumed.text)
        }
        return .object(object)
    }

    static func text(_ poll: NotificationFeed.Poll, _ reports: [NotificationReport]) -> String {
        var lines = reports.isEmpty ? ["fresh"] : reports.map(\.text)
        if let cursor = poll.cursor { lines.append("cursor \(cursor.text)") }
        return lines.joined(separator: "\n")
    }
}

extension NotificationReport {
    /// Verifies a notification and returns a report of it.
    static func of(
        _ notification: String, by verifier: some NotificationVerifying, serverTime: Int64
    ) async -> NotificationReport {
        do throws(VerificationFailure) {
            let claims = try await verifier.verify(notification, serverTime: serverTime)
            return NotificationReport(time: Date(), outcome: .success(claims))
        } catch {
            return NotificationReport(time: Date(), outcome: .failure(error))
        }
    }

    /// Whether the notification failed to verify.
    var isUnverified: Bool {
        if case .failure = outcome { true } else { false }
    }
}
