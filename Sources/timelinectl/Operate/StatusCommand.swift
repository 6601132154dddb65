import ArgumentParser
import Foundation
import GatewayDocuments
import TimelineClient
import WidgetModel

/// Shows a gateway's status.
struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Say on one screen how a gateway does, and what is wrong.",
        discussion: """
            Whether it is ready, what is wrong now and what to do about it, how fresh widgets are by \
            channel, streams, apps, keys and certificate. Asks the admin port.

            Exit status 0 when the gateway is ready and nothing is wrong, else 6; 3 when it is not \
            reached.

            Examples:
              timelinectl status
              timelinectl status --admin 127.0.0.1:9465 --json
              timelinectl status >/dev/null || page-somebody
            """)

    @OptionGroup var options: AdminOptions

    func run() async throws {
        let admin = try options.connection()
        do throws(GatewayFailure) {
            // `after` the maximum excludes the history, which is not needed here.
            let overview = try await admin.page("/api/overview?after=\(Int64.max)")
            let (system, apps) = (
                try await admin.page("/api/system"), try await admin.page("/api/apps")
            )
            let report = StatusReport(
                overview: try Overview(answer: .object(overview)),
                system: try SystemStatus(answer: .object(system)),
                apps: try AppList(answer: .object(apps)).apps, palette: Terminal.palette())
            var all = overview
            all["series"] = nil
            all["well"] = .bool(report.isWell)
            all["system"] = .object(system)
            all["apps"] = apps["apps"] ?? []
            Terminal.print(.object(all), as: options.form) {
                report.lines.joined(separator: "\n")
            }
            if !report.isWell { Foundation.exit(ExitStatus.unwell.rawValue) }
        } catch {
            throw Terminal.fail(error, as: options.form)
        }
    }
}

extension Terminal {
    /// The highlighting for standard output.
    static func palette(
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> Palette {
        let isRefused = environment["NO_COLOR"].map { !$0.isEmpty } ?? false
        return Palette(
            hasColors: !isRefused && environment["TERM"] != "dumb" && isatty(STDOUT_FILENO) == 1)
    }
}
