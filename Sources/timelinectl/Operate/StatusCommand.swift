import ArgumentParser
import Foundation
import GatewayDocuments
import TimelineRuntime
import WidgetModel

struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show a gateway's status and problems on one screen.",
        discussion: """
            Prints whether the gateway is ready, current problems and remedies, freshness by \
            channel, streams, apps, keys and certificate. Uses the admin port.

            Exit status 0 if the gateway is ready and reports no problem, 3 if it is not reached, \
            otherwise 6.

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
    static func palette() -> Palette {
        let environment = ProcessInfo.processInfo.environment
        let isRefused = environment["NO_COLOR"].map { !$0.isEmpty } ?? false
        return Palette(
            hasColors: !isRefused && environment["TERM"] != "dumb" && isatty(STDOUT_FILENO) == 1)
    }
}
